// A task's whole life: spawn, wakes, polls and end, with totals over all of it and a list that
// fetches what is scrolled to.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatCount, formatDuration } from '../base/format';
import { isAbort } from '../protocol/client';
import type { TaskLife, TaskRow } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';
import { factList, momentLink } from './facts';
import { VirtualList } from './virtual_list';

const PAGE = 200;
const ROW_PX = 38;

export function taskPanel(store: ViewerStore): HTMLElement {
  const body = h('div', { class: 'task-panel' });
  let controller = new AbortController();
  store.task.watch((task) => {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    if (task === null) {
      const hint = 'Select a task: click one of its polls, or search for its number with /.';
      replaceChildren(body, h('p', { class: 'pad soft' }, hint));
      return;
    }
    replaceChildren(body, h('p', { class: 'pad', role: 'status' }, `Asking for task ${task}…`));
    store.client.task(store.run, task, 0, PAGE, signal).then(
      (life) => {
        store.taskLife.set(life);
        replaceChildren(body, ...content(store, life, signal));
      },
      (error: unknown) => {
        if (isAbort(error)) return;
        const text = error instanceof Error ? error.message : String(error);
        replaceChildren(body, h('p', { class: 'pad', role: 'alert' }, text));
      },
    );
  });
  return body;
}

function content(store: ViewerStore, life: TaskLife, signal: AbortSignal): Node[] {
  const list = new VirtualList<TaskRow>({
    total: life.rows_total,
    pageSize: PAGE,
    rowPx: ROW_PX,
    label: `life of task ${life.task}`,
    load: async (page) =>
      (await store.client.task(store.run, life.task, page * PAGE, PAGE, signal)).rows,
    draw: (row) => rowOf(store, row),
  });
  list.seed(0, life.rows);
  const first = life.first_ns;
  const last = life.last_ns;
  const all = () => (first !== null && last !== null ? store.show(first, last) : undefined);
  const actions = h(
    'div',
    { class: 'panel-actions' },
    h('button', { on: { click: all } }, 'Zoom to its life'),
    h('button', { on: { click: () => list.scrollTo(0) } }, 'First'),
    h('button', { on: { click: () => list.scrollTo(life.rows_total - 1) } }, 'Last'),
    h('button', { on: { click: () => store.selectTask(null) } }, 'Unselect (Esc)'),
  );
  const count = h('p', { class: 'soft' }, `${formatCount(life.rows_total)} rows in order of time`);
  const head = h(
    'div',
    { class: 'pad' },
    h('h2', {}, `Task ${life.task}`),
    totals(store, life),
    actions,
    count,
  );
  return [head, list.element];
}

function totals(store: ViewerStore, life: TaskLife): HTMLElement {
  const moment = (at: number | null, otherwise: string | null) =>
    at === null ? otherwise : momentLink(store, at);
  const delays = `worst ${formatDuration(life.delay.worst_ns)}, known for ${formatCount(
    life.delay.known,
  )} of ${formatCount(life.polls_total)} polls`;
  const worst = life.worst_poll;
  const open = () =>
    worst ? store.select({ what: 'polls', index: worst.index }, null) : undefined;
  const go = () => {
    if (worst) store.reveal(worst.at_ns);
    open();
  };
  return factList([
    ['Spawned', moment(life.spawned_ns, 'before this trace, or not recorded')],
    ['At', life.spawn_loc],
    ['Ended', moment(life.ended_ns, 'not in this trace')],
    ['First seen', moment(life.first_ns, null)],
    ['Last seen', moment(life.last_ns, null)],
    ['Polls', `${formatCount(life.polls_total)}, ${formatDuration(life.busy_ns)} in all`],
    [
      'Longest',
      worst
        ? h('button', { class: 'link', on: { click: go } }, formatDuration(worst.dur_ns))
        : null,
    ],
    ['Ready delay', delays],
    ['Wakes', formatCount(life.wakes_total)],
    ['Dumps', life.dumps_total === 0 ? null : `${formatCount(life.dumps_total)}, where it waited`],
    ['Changed worker', `${formatCount(life.migrations)} times`],
    ['Instrumented', life.instrumented === false ? 'no: wakes are not recorded' : null],
  ]);
}

function rowOf(store: ViewerStore, row: TaskRow): HTMLElement {
  const worker = store.summary.workers.find((entry) => entry.lane === row.lane);
  const open = () => {
    store.reveal(row.at_ns);
    if (row.dump !== null) return store.select({ what: 'dumps', index: row.dump }, null);
    if (row.poll === null) return;
    const end = row.at_ns + (row.dur_ns ?? 0);
    store.select({ what: 'polls', index: row.poll }, { lane: row.lane, start: row.at_ns, end });
  };
  const what = row.dur_ns === null ? (row.where ?? '') : formatDuration(row.dur_ns);
  const by = row.by === null ? null : `by task ${row.by}`;
  const delay = row.delay_ns === null ? null : `after ${formatDuration(row.delay_ns)}`;
  const button = h(
    'button',
    { class: 'vrow', tabindex: -1, on: { click: open } },
    h('span', { class: 'soft' }, row.what),
    h('span', { title: 'since the trace began' }, `+${formatDuration(row.at_ns, 6)}`),
    h('b', { class: 'ellipsis', title: row.where ?? '' }, what),
    h('span', { class: 'note soft ellipsis' }, [by, worker?.name, delay].filter(Boolean).join(' ')),
  );
  return h('div', { class: 'vitem', role: 'listitem' }, button);
}
