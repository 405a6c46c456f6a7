// What recording cost and what it left out: the recorder's own bill, classes that a budget thinned,
// losses by cause, and what the trace says of itself. What no record tells isn't shown as zero.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatShare,
  plural,
} from '../base/format';
import { isOff, offText } from '../model/loss';
import type { Bill, ShedClass, Summary } from '../protocol/types';
import { factList } from './facts';

export function recorderPanel(summary: Summary): HTMLElement {
  return h(
    'div',
    { class: 'pad recorder' },
    ...section('Cost of recording', costOf(summary.bill)),
    ...section('Left out to keep within the budget', shedTable(summary.shed_classes)),
    ...section('Lost', lost(summary)),
    ...section('Wall time', h('p', {}, wallText(summary))),
    ...section('The trace says of itself', metadataOf(summary.metadata)),
  );
}

function section(title: string, body: HTMLElement): HTMLElement[] {
  return [h('h2', {}, title), body];
}

function costOf(bill: Bill | null): HTMLElement {
  if (bill === null || bill.elapsed_ns === 0) {
    return h('p', { class: 'soft' }, 'Not known: the trace holds no bill of the recorder.');
  }
  const share = (ns: number) => `${formatShare(ns / bill.elapsed_ns)} of a CPU`;
  const seconds = bill.elapsed_ns / 1e9;
  const rate = (count: number) => formatCount(Math.round(count / seconds));
  const inAll = bill.events + bill.shed;
  const shed = `${formatCount(bill.shed)}, ${formatShare(bill.shed / Math.max(inAll, 1))} of all`;
  const kernel: [string, string][] =
    bill.sample_kernel_ns === null ? [['In the kernel, for CPU samples', 'not known']] : [];
  return factList([
    ['In the service', `${share(bill.host_cpu_ns)} (estimated)`],
    ...kernel,
    ['In the collector', share(bill.collector_cpu_ns)],
    ['Written', `${formatBytes(bill.bytes)}, ${formatBytes(bill.bytes / seconds)}/s`],
    ['Events recorded', `${formatCount(bill.events)}, ${rate(bill.events)} a second`],
    ['Events left out', bill.shed === 0 ? 'none' : shed],
    ['Told by', `${plural(bill.bills, 'bill')} over ${formatDuration(bill.elapsed_ns)}`],
  ]);
}

function table(heads: string[], rows: string[][]): HTMLElement {
  return h(
    'table',
    { class: 'counts' },
    h('thead', {}, h('tr', {}, ...heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((cell) => h('td', {}, cell))))),
  );
}

function shedTable(classes: readonly ShedClass[]): HTMLElement {
  if (classes.length === 0) return h('p', { class: 'soft' }, 'Nothing.');
  const rows = classes.map((entry) => [
    entry.class,
    `${entry.is_open ? 'at least ' : ''}${formatCount(entry.count)}`,
    `one in ${entry.most_keep_one_in.toFixed(1)}`,
  ]);
  return table(['Class', 'Left out', 'Kept at the least'], rows);
}

function lost(summary: Summary): HTMLElement {
  const off = offText(summary);
  const events = lostEvents(summary);
  return off === null ? events : h('div', {}, events, h('p', {}, `R${off.slice(1)}.`));
}

function lostEvents(summary: Summary): HTMLElement {
  const { loss_total: total, loss_at_least: atLeast } = summary;
  const loss = summary.loss.filter((entry) => !isOff(entry));
  if (total === 0) return h('p', { class: 'soft' }, 'Nothing was counted as lost.');
  if (loss.length === 0 && atLeast === 0) {
    const why = 'Not known: the trace was not read to its end, or its writer tells of no losses.';
    return h('p', { class: 'soft' }, why);
  }
  const causes = new Map<string, { counted: number; isKnown: boolean }>();
  for (const { cause, count } of loss) {
    const entry = causes.get(cause) ?? { counted: 0, isKnown: true };
    entry.counted += count ?? 0;
    entry.isKnown &&= count !== null;
    causes.set(cause, entry);
  }
  const listed = [...causes.values()].reduce((sum, { counted }) => sum + counted, 0);
  const text = (counted: number, isKnown: boolean) =>
    isKnown ? formatCount(counted) : counted === 0 ? 'unknown' : `at least ${formatCount(counted)}`;
  const rows = [...causes].map(([cause, { counted, isKnown }]) => [cause, text(counted, isKnown)]);
  if (listed < atLeast) rows.push(['causes beyond the list', formatCount(atLeast - listed)]);
  return table(['Cause', 'Events'], rows);
}

function wallText(summary: Summary): string {
  const { anchors, anchors_error_ns: error } = summary;
  if (anchors.length === 0) return 'Not known: the trace holds no pair of clocks.';
  const pairs = `By ${plural(summary.anchors_total, 'clock pair')}`;
  return error === 0 ? `${pairs}.` : `${pairs}, thinned: up to ${formatDuration(error)} off.`;
}

function metadataOf(metadata: Readonly<Record<string, string>>): HTMLElement {
  const rows = Object.entries(metadata);
  if (rows.length === 0) return h('p', { class: 'soft' }, 'Nothing.');
  return factList(rows.map(([key, value]): [string, string] => [key, value]));
}
