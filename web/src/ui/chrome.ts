// The bar at the top, the strips that warn, and the legend at the bottom.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { formatCount, formatDuration } from '../base/format';
import type { Signal } from '../base/signal';
import { eventsText, isOff, lossSentences } from '../model/loss';
import { span } from '../model/view';
import type { Summary } from '../protocol/types';
import type { Theme } from '../store/theme';
import type { ViewerStore } from '../store/viewer_store';
import { traceRange } from './facts';
import { themeButton } from './theme_button';

export interface BarActions {
  zoomIn: () => void;
  zoomOut: () => void;
  help: () => void;
}

export function topBar(
  store: ViewerStore,
  theme: Signal<Theme>,
  search: HTMLElement,
  actions: BarActions,
): HTMLElement {
  const { summary } = store;
  const button = (text: string, label: string, click: () => void) =>
    h('button', { title: label, 'aria-label': label, on: { click } }, text);
  return h(
    'header',
    { class: 'topbar' },
    h('a', { class: 'brand', href: '#', title: 'all runs' }, 'dial', h('b', {}, '9')),
    h(
      'div',
      { class: 'title' },
      h('h1', { class: 'run-name' }, summary.name),
      h('span', { class: 'soft' }, `${traceRange(store)}, ${eventsText(summary)}`),
    ),
    search,
    h(
      'div',
      { class: 'buttons' },
      button('−', 'zoom out (-)', actions.zoomOut),
      button('+', 'zoom in (+)', actions.zoomIn),
      button('Fit', 'fit the whole trace (0)', () => store.fit()),
      button('Flame graph', 'Flame graph of the CPU time (g)', () => store.showFlame({})),
      themeButton(theme),
      button('?', 'keys (?)', actions.help),
    ),
  );
}

const LISTS: Readonly<Record<string, string>> = {
  by_type: 'the event types',
  workers: 'the workers',
  samples: 'the rows of samples',
  metadata: 'the metadata',
  files: 'the files',
  loss: 'the records of loss',
  stalls: 'the stalls of the platform',
  custom: 'the custom event types',
  queues: 'the queues',
};

/** One line for each thing that a reader must know before believing the picture. */
export function warningStrips(summary: Summary): HTMLElement[] {
  const out: HTMLElement[] = [];
  const { truncated } = summary;
  if (truncated) {
    const text = `This trace ended early: ${truncated.message}. What came before is shown.`;
    out.push(h('div', { class: 'strip', role: 'status' }, text));
  }
  for (const text of lossSentences(summary)) {
    out.push(h('div', { class: 'strip loss', role: 'status' }, text));
  }
  if (summary.shed.length > 0) {
    const what = summary.shed.join('; ');
    const text = `Left out to keep within the recorder's budget: ${what}. Counts are lower bounds.`;
    out.push(h('div', { class: 'strip loss', role: 'status' }, text));
  }
  const lacking = Object.entries(summary.left_out);
  if (lacking.length > 0) {
    const what = lacking.map(([list, count]) => `${formatCount(count)} of ${LISTS[list] ?? list}`);
    const text = `More than this page lists: it lacks ${what.join(', ')}.`;
    out.push(h('div', { class: 'strip', role: 'status' }, text));
  }
  return out;
}

const STEPS = ['< 10 µs', '< 100 µs', '< 1 ms', '< 10 ms', '< 100 ms', '≥ 100 ms'];

export function legend(store: ViewerStore): HTMLElement {
  const swatch = (name: string, text: string) =>
    h('span', {}, h('i', { class: `swatch-${name}` }), text);
  const status = h('span', { class: 'status', role: 'status' });
  store.problem.watch((problem) => (status.textContent = problem ?? ''));
  const width = h('span', {});
  const isOffToo = store.summary.loss.some(isOff);
  store.view.watch((view) => (width.textContent = `${formatDuration(span(view))} on screen`));
  return h(
    'footer',
    { class: 'legend' },
    h('span', {}, 'Polls:'),
    ...STEPS.map((text, step) => swatch(`poll-${step}`, text)),
    swatch('wait', 'kernel wait'),
    swatch('park', 'parked'),
    swatch('loss', isOffToo ? 'events lost or recording off' : 'events lost'),
    store.summary.stalls.length > 0 ? swatch('stall', 'platform stalled') : null,
    store.summary.samples_total > 0 ? swatch('sample', 'sample of the thread') : null,
    status,
    width,
  );
}
