// Names and values in two columns, with links for moments and tasks.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import {
  formatBytes,
  formatClock,
  formatCount,
  formatDate,
  formatDuration,
  unitName,
} from '../base/format';
import type { Fact } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';

export type Value = Node | string | null;

/** A definition list without the rows that have no value. */
export function factList(rows: [string, Value][]): HTMLElement {
  const list = h('dl', { class: 'facts' });
  for (const [name, value] of rows) {
    if (value === null) continue;
    list.append(h('dt', {}, name), h('dd', {}, value));
  }
  return list;
}

/** "14:03:22.123456 UTC (+1.2 s)"; the offset alone in a trace without a clock pair. */
export function momentText(store: ViewerStore, at: number): string {
  const epoch = store.clock.epoch(at);
  const offset = `+${formatDuration(at, 9)}`;
  return epoch === null ? offset : `${formatClock(epoch, 1000)} UTC (${offset})`;
}

export function momentLink(store: ViewerStore, at: number): HTMLElement {
  const go = () => store.reveal(at);
  return h('button', { class: 'link', on: { click: go } }, momentText(store, at));
}

export function taskLink(store: ViewerStore, task: string): HTMLElement {
  return h(
    'button',
    { class: 'link', on: { click: () => store.selectTask(task) } },
    `task ${task}`,
  );
}

export function factValue(store: ViewerStore, fact: Fact): Value {
  if (fact.task !== undefined) return taskLink(store, fact.task);
  if (fact.at_ns !== undefined) return momentLink(store, fact.at_ns);
  if (fact.value === null) return 'unknown';
  if (typeof fact.value === 'string') return fact.value;
  if (fact.unit === 'ns') return formatDuration(fact.value);
  if (fact.unit === 'bytes') return formatBytes(fact.value);
  const text = Number.isInteger(fact.value) ? formatCount(fact.value) : String(fact.value);
  return fact.unit ? `${text} ${unitName(fact.unit)}` : text;
}

/** The day and the ends of the trace: "2026-06-22 13:50:02 – 13:50:14 UTC". */
export function traceRange(store: ViewerStore): string {
  const start = store.clock.epoch(0);
  const end = store.clock.epoch(store.durationNs);
  const isWhole = store.summary.truncated === null;
  const length = `${isWhole ? '' : 'at least '}${formatDuration(store.durationNs)}`;
  if (start === null || end === null) return `${length}, no wall clock in this trace`;
  const decimals = store.durationNs < 10e9 ? 1e6 : 1e9;
  const [from, to] = [formatClock(start, decimals), formatClock(end, decimals)];
  return `${formatDate(start)} ${from} – ${to} UTC, ${length}`;
}
