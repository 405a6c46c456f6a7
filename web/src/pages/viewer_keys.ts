// What each key does in the viewer. The list that a user sees is in ui/help.ts.
// SPDX-License-Identifier: Apache-2.0
import { pan } from '../model/view';
import type { ViewerStore } from '../store/viewer_store';
import type { Actions } from '../ui/keys';
import type { TimelineView } from './timeline_view';

const ZOOM_STEP = 1.6;
const PAN_STEP = 0.2;
const FINE_STEP = 0.1;

export interface KeyTargets {
  search: () => void;
  help: () => void;
}

export function viewerActions(
  store: ViewerStore,
  timeline: TimelineView,
  targets: KeyTargets,
): Actions {
  const move = (share: number) => store.view.set(pan(store.view.value, share, store.durationNs));
  const middle = () => timeline.widthCss / 2;
  const moveFinding = (step: number) => {
    const total = store.findings.value?.findings.length ?? 0;
    if (total === 0) return;
    const at = store.finding.value;
    const start = step > 0 ? 0 : total - 1;
    store.openFinding(at === null ? start : (at + step + total) % total);
  };
  return {
    w: () => timeline.zoomAtPointer(1 / ZOOM_STEP),
    s: () => timeline.zoomAtPointer(ZOOM_STEP),
    a: () => move(-PAN_STEP),
    d: () => move(PAN_STEP),
    ArrowLeft: () => move(-FINE_STEP),
    ArrowRight: () => move(FINE_STEP),
    ArrowUp: () => store.moveRow(-1),
    ArrowDown: () => store.moveRow(1),
    '+': () => timeline.zoomAt(1 / ZOOM_STEP, middle()),
    '=': () => timeline.zoomAt(1 / ZOOM_STEP, middle()),
    '-': () => timeline.zoomAt(ZOOM_STEP, middle()),
    '0': () => store.fit(),
    f: () => zoomToSelection(store),
    m: () => measureSelection(store),
    Backspace: () => store.back(),
    j: () => moveFinding(1),
    k: () => moveFinding(-1),
    ',': () => void stepPoll(store, timeline, -1),
    '.': () => void stepPoll(store, timeline, 1),
    Enter: () => timeline.selectAtMiddle(),
    t: () => void selectTaskOfPoll(store),
    '[': () => goToTaskEnd(store, 'first_ns'),
    ']': () => goToTaskEnd(store, 'last_ns'),
    g: () => (store.flame.value ? store.closeFlame() : store.showFlame({})),
    '/': () => targets.search(),
    '?': () => targets.help(),
    Escape: () => unselect(store),
  };
}

function zoomToSelection(store: ViewerStore): void {
  const mark = store.mark.value;
  const range = store.range.value;
  if (mark) store.show(mark.start, mark.end);
  else if (range) store.show(...range);
}

function measureSelection(store: ViewerStore): void {
  const mark = store.mark.value;
  if (mark && mark.end > mark.start) store.range.set([mark.start, mark.end]);
}

/** Escape takes away one thing at a time. */
function unselect(store: ViewerStore): void {
  if (store.range.value) store.range.set(null);
  else if (store.selection.value || store.mark.value) store.select(null, null);
  else store.selectTask(null);
}

/** The polls of a lane are numbered through: the next one is one further, if it is in the lane. */
async function stepPoll(store: ViewerStore, timeline: TimelineView, step: number): Promise<void> {
  const selection = store.selection.value;
  if (selection?.what !== 'polls') return timeline.selectAtMiddle();
  const here = await store.client.details(store.run, 'polls', selection.index);
  const index = selection.index + step;
  if (index < 0 || index >= store.summary.polls) return;
  const next = await store.client.details(store.run, 'polls', index);
  if (next.lane !== here.lane) return;
  const end = next.at_ns + (next.dur_ns ?? 0);
  store.reveal(next.at_ns);
  store.select({ what: 'polls', index }, { lane: next.lane, start: next.at_ns, end });
}

async function selectTaskOfPoll(store: ViewerStore): Promise<void> {
  const selection = store.selection.value;
  if (!selection || selection.what === 'events') return;
  const details = await store.client.details(store.run, selection.what, selection.index);
  if (details.task !== null) store.selectTask(details.task);
}

function goToTaskEnd(store: ViewerStore, which: 'first_ns' | 'last_ns'): void {
  const at = store.taskLife.value?.[which];
  if (at === null || at === undefined) return;
  store.reveal(at);
}
