// Steps through the moments of a frame of the flame graph: each is shown and selected.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { formatCount, plural } from '../base/format';
import type { FlameMoments } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';

export function flameSteps(store: ViewerStore, found: FlameMoments): HTMLElement {
  const shown = found.moments.length;
  const left = found.left_out > 0 ? ` (${formatCount(found.left_out)} not shown)` : '';
  const at = h('span', { class: 'soft', role: 'status' }, `${plural(shown, 'moment')}${left}`);
  let step = -1;
  const go = (by: number) => {
    step = (Math.max(step, by > 0 ? -1 : 0) + by + shown) % shown;
    const moment = found.moments[step];
    if (!moment) return;
    at.textContent = `${formatCount(step + 1)} of ${formatCount(shown)}${left}`;
    store.reveal(moment.at_ns);
    const what = moment.of === 'sample' ? 'samples' : moment.of === 'wait' ? 'waits' : null;
    if (what) store.select({ what, index: moment.index }, null);
    else store.select(null, { lane: null, start: moment.at_ns, end: moment.at_ns + moment.dur_ns });
  };
  const button = (text: string, label: string, by: number) =>
    h('button', { title: label, 'aria-label': label, on: { click: () => go(by) } }, text);
  return h(
    'span',
    { class: 'flame-steps' },
    button('‹', 'moment before', -1),
    at,
    button('›', 'next moment', 1),
  );
}
