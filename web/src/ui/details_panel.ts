// Everything that is known of the selected poll, span or event, and of the measured range.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatDuration } from '../base/format';
import { type FlameChoice, WHOLE_CHOICE } from '../model/flame_choice';
import { isAbort } from '../protocol/client';
import type { Details } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';
import { stackFrames } from './frames';
import { spanParts } from './span_parts';
import { factList, factValue, momentLink, momentText, taskLink } from './facts';

export function detailsPanel(store: ViewerStore): HTMLElement {
  const range = h('div', {});
  const body = h('div', { 'aria-live': 'polite' });
  let controller = new AbortController();
  store.range.watch((value) => {
    if (!value) return range.replaceChildren();
    const clear = h('button', { on: { click: () => store.range.set(null) } }, 'Clear the range');
    const zoom = h('button', { on: { click: () => store.show(...value) } }, 'Zoom to it (f)');
    replaceChildren(
      range,
      h('h2', {}, `Range of ${formatDuration(value[1] - value[0])}`),
      factList([
        ['From', momentText(store, value[0])],
        ['To', momentText(store, value[1])],
      ]),
      h('div', { class: 'panel-actions' }, zoom, clear),
    );
  });
  const show = () => {
    controller.abort();
    controller = new AbortController();
    const asked = ask(store, controller.signal);
    if (!asked) {
      const hint = 'Click a poll, a park, a span or an event to see what is known of it.';
      replaceChildren(body, h('p', { class: 'soft' }, hint));
      return;
    }
    replaceChildren(body, h('p', { role: 'status' }, 'Asking…'));
    asked.then(
      (details) => {
        const end = details.at_ns + (details.dur_ns ?? 0);
        store.mark.set({ lane: details.lane, start: details.at_ns, end });
        if (details.lane !== null) {
          store.layOutLane(details.lane);
          store.focusLane(details.lane);
        }
        replaceChildren(body, ...content(store, details));
      },
      (error: unknown) => {
        if (isAbort(error)) return;
        const text = error instanceof Error ? error.message : String(error);
        replaceChildren(body, h('p', { role: 'alert' }, text));
      },
    );
  };
  store.selection.watch(show);
  store.spot.watch(show);
  return h('div', { class: 'pad' }, range, body);
}

/** The request for what is selected, or null where nothing is. */
function ask(store: ViewerStore, signal: AbortSignal): Promise<Details> | null {
  const selection = store.selection.value;
  const spot = store.spot.value;
  if (selection) return store.client.details(store.run, selection.what, selection.index, signal);
  return spot ? store.client.near(store.run, spot.lane, spot.at, signal) : null;
}

function content(store: ViewerStore, details: Details): Node[] {
  const end = details.at_ns + (details.dur_ns ?? 0);
  const worker = store.summary.workers.find((entry) => entry.lane === details.lane);
  const facts = factList([
    ['Start', momentLink(store, details.at_ns)],
    ['Duration', details.dur_ns === null ? null : formatDuration(details.dur_ns)],
    ['Worker', worker ? worker.name : null],
    ['Task', details.task === null ? null : taskLink(store, details.task)],
    ...details.facts.map(
      (fact) => [fact.name, factValue(store, fact)] as [string, ReturnType<typeof factValue>],
    ),
  ]);
  const zoom = h(
    'button',
    { on: { click: () => store.show(details.at_ns, end) } },
    'Zoom to it (f)',
  );
  const out: Node[] = [h('h2', {}, details.title), facts];
  if (details.parts) out.push(spanParts(details.parts));
  if (details.frames && details.frames.length > 0) out.push(stackFrames(details.frames));
  const flame = flameChange(details, worker?.worker ?? null);
  const isMoment = details.what === 'sample' || details.what === 'offcpu';
  const text = isMoment ? 'In the flame graph' : 'Flame graph of it';
  const open = () => flame && store.showFlame(flame);
  const opener = flame ? h('button', { on: { click: open } }, text) : null;
  out.push(h('div', { class: 'panel-actions' }, zoom, opener));
  return out;
}

/** What the flame graph is to be of: exactly a span or a poll, or where a moment's function is. */
function flameChange(details: Details, worker: number | null): Partial<FlameChoice> | null {
  const whole = { ...WHOLE_CHOICE, of: 'time' } as const;
  const { what, index, at_ns: from, dur_ns: length, task } = details;
  if (details.has_id && index !== null) return { ...whole, scope: 'all', span: index };
  const kept = { ...whole, scope: 'stretch', stretch: [from, from + (length ?? 0)] } as const;
  if (what === 'span' && task !== null) return { ...kept, task };
  if (what === 'poll' && length !== null && worker !== null) return { ...kept, worker };
  const leaf = details.frames?.[0]?.name;
  if (what === 'sample') return leaf ? { of: 'cpu', search: leaf } : null;
  return what === 'offcpu' && leaf ? { of: 'offcpu', search: leaf } : null;
}
