// Where a span's time went: a bar of five parts that add up to its length, with a legend that gives
// each in figures, and why some of it isn't known. Zero parts keep their line, so that spans can be
// compared at a glance.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { formatDuration, formatShare } from '../base/format';
import type { SpanParts } from '../protocol/types';

const PARTS: readonly [keyof SpanParts & `${string}_ns`, string, string, string][] = [
  ['on_cpu_ns', 'on-cpu', 'On a CPU', 'in a poll, by its thread’s CPU clock'],
  ['blocked_ns', 'blocked', 'Blocked', 'held by a call, a lock or a strand'],
  ['async_wait_ns', 'async', 'Waiting', 'suspended, nothing to do yet'],
  ['scheduler_delay_ns', 'delay', 'Ready', 'ready to run, waiting for a worker'],
  ['unknown_ns', 'unknown', 'Unknown', 'the trace does not tell'],
];

export function spanParts(parts: SpanParts): HTMLElement {
  const total = PARTS.reduce((sum, [key]) => sum + parts[key], 0);
  const bar = h('div', { class: 'parts-bar', 'aria-hidden': 'true' });
  const legend = h('dl', { class: 'parts' });
  for (const [key, name, label, meaning] of PARTS) {
    const ns = parts[key];
    const share = total === 0 ? 0 : ns / total;
    const piece = h('i', { class: `part-${name}`, title: `${label}: ${formatDuration(ns)}` });
    piece.style.flexGrow = String(share);
    if (ns > 0) bar.append(piece);
    legend.append(
      h('dt', { title: meaning }, h('i', { class: `part-${name}` }), label),
      h('dd', { class: ns === 0 ? 'soft' : '' }, formatDuration(ns)),
      h('dd', { class: 'soft' }, formatShare(share)),
    );
  }
  const out = h('section', { class: 'span-parts', 'aria-label': 'where the time went' });
  out.append(h('h3', {}, 'Where the time went'), bar, legend);
  if (parts.unknown.length > 0) out.append(reasons(parts));
  return out;
}

function reasons(parts: SpanParts): HTMLElement {
  const list = h('ul', { class: 'more' });
  for (const { ns, why } of [...parts.unknown].sort((a, b) => b.ns - a.ns)) {
    list.append(h('li', {}, `${formatDuration(ns)} unknown: ${why}`));
  }
  return list;
}
