// What the flame graph is of, and how it is shown: one row of controls.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatDuration } from '../base/format';
import {
  type FlameBase,
  type FlameChoice,
  type FlameOf,
  type FlameShows,
  hasWaits,
  isHeap,
} from '../model/flame_choice';
import type { ViewerStore } from '../store/viewer_store';

const SCOPES: readonly [FlameChoice['scope'], string][] = [
  ['screen', 'On screen'],
  ['range', 'Measured range'],
  ['stretch', 'Kept stretch'],
  ['all', 'Whole trace'],
];
const TYPING_PAUSE_MS = 300;

const OFS: readonly [FlameOf, string][] = [
  ['cpu', 'On CPU'],
  ['offcpu', 'Off CPU'],
  ['time', 'On and off CPU'],
  ['locks', 'Locks'],
  ['allocated', 'Heap: allocated'],
  ['live', 'Heap: live'],
];
const SHOWS: readonly [FlameShows, string][] = [
  ['icicle', 'Left heavy'],
  ['inverted', 'Inverted: by leaf'],
  ['time', 'Order of time'],
  ['butterfly', 'Callers and callees'],
  ['table', 'Table'],
];
const BASES: readonly [FlameBase, string][] = [
  ['none', 'Compare with…'],
  ['previous', 'the time before it'],
  ['range', 'the measured range'],
  ['all', 'the whole trace'],
];
const OTHER = 'run:'; // before a run's id, in the same list
const TOPS: readonly [FlameChoice['top'], string][] = [
  ['reason', 'by reason'],
  ['call', 'by call'],
  ['none', 'by function'],
];

export function flameControls(store: ViewerStore, found: HTMLElement): HTMLElement {
  const search = typed('find a function', 'find a function', (text) =>
    store.showFlame({ search: text }),
  );
  const parts = [...kindControls(store), ...subjectControls(store), ...waitControls(store)];
  parts.push({
    elements: [h('span', { class: 'spacer' }), found, search, closeButton(store)],
    update: (choice) => setText(search, choice.search),
  });
  const update = () => {
    const choice = store.flame.value;
    if (choice) for (const part of parts) part.update(choice);
  };
  const { flame, range, mark, task, selection, view } = store;
  for (const part of [flame, range, mark, task, selection, view]) {
    (part as { watch(listener: () => void): unknown }).watch(update);
  }
  const elements = parts.flatMap((part) => part.elements);
  return h('div', { class: 'flame-controls' }, h('h2', {}, 'Flame graph'), ...elements);
}

interface Control {
  elements: HTMLElement[];
  update: (choice: FlameChoice) => void;
}

/** What the weights are, in which view, of which stretch, against what. */
function kindControls(store: ViewerStore): Control[] {
  const of = choose(OFS, 'what the flame graph is of', (value) =>
    store.showFlame({ of: value, ...(isHeap(value) ? { worker: null } : {}) }),
  );
  const shows = choose(SHOWS, 'view', (value) => {
    const isPlain = value === 'time' || value === 'butterfly';
    store.showFlame({ shows: value, around: null, ...(isPlain ? { base: 'none' } : {}) });
  });
  const scope = choose(SCOPES, 'stretch of time', (value) => {
    const mark = store.mark.value;
    const kept = value === 'stretch' && mark ? { stretch: [mark.start, mark.end] as const } : {};
    store.showFlame({ scope: value, ...kept });
  });
  const length = h('span', { class: 'soft' });
  const lines = toggle((on) => store.showFlame({ lines: on }));
  const base = baseSelect(store);
  const update = (choice: FlameChoice) => {
    const stretch = store.flameStretch();
    of.value = choice.of;
    shows.value = choice.shows;
    setEnabled(shows, 'time', !isHeap(choice.of));
    lines.set(choice.lines, 'Lines');
    scope.value = store.flameScope();
    setEnabled(scope, 'range', store.range.value !== null);
    setEnabled(scope, 'stretch', store.mark.value !== null || choice.stretch !== null);
    base.value = baseValue(store);
    base.classList.toggle('hidden', choice.shows === 'time' || choice.shows === 'butterfly');
    setEnabled(base, 'range', store.range.value !== null && store.flameScope() !== 'range');
    setEnabled(base, 'previous', stretch !== null);
    setEnabled(base, 'all', stretch !== null);
    const lengthNs = stretch ? stretch[1] - stretch[0] : store.durationNs;
    length.textContent = choice.span === null ? formatDuration(lengthNs) : ''; // not the span's
  };
  return [{ elements: [of, shows, lines.element, scope, length, base], update }];
}

/** Whose it is. */
function subjectControls(store: ViewerStore): Control[] {
  const worker = workerSelect(store);
  const task = toggle((on) => store.showFlame({ task: on ? store.task.value : null }));
  const inSpan = toggle((on) => store.showFlame({ span: on ? spanOf(store) : null }));
  const label = typed('label: tenant=acme', 'label', (text) => store.showFlame({ label: text }));
  const update = (choice: FlameChoice) => {
    worker.value = choice.worker === null ? '' : String(choice.worker);
    worker.classList.toggle('hidden', isHeap(choice.of)); // its samples don't tell
    const id = choice.task ?? store.task.value;
    task.set(choice.task !== null, id === null ? null : `Task ${id}`);
    const span = choice.span ?? spanOf(store);
    inSpan.set(choice.span !== null, span === null ? null : `Span #${span}`);
    setText(label, choice.label);
  };
  return [{ elements: [worker, task.element, inSpan.element, label], update }];
}

/** What only waits, or only the heap has. */
function waitControls(store: ViewerStore): Control[] {
  const top = choose(TOPS, 'what stands on top', (value) => store.showFlame({ top: value }));
  const parked = toggle((on) => store.showFlame({ parked: on }));
  const counts = toggle((on) => store.showFlame({ counts: on }));
  const update = (choice: FlameChoice) => {
    top.value = choice.top;
    top.classList.toggle('hidden', !hasWaits(choice.of) || choice.shows === 'table');
    parked.set(choice.parked, hasWaits(choice.of) ? 'Idle workers' : null);
    counts.set(choice.counts, isHeap(choice.of) ? 'Counts' : null);
  };
  return [{ elements: [top, parked.element, counts.element], update }];
}

function baseValue(store: ViewerStore): string {
  const { base } = store.flameBase();
  return base === 'run' ? OTHER + (store.flame.value?.baseRun ?? '') : base;
}

/** Parts of this trace, and the other ones that the server has. */
function baseSelect(store: ViewerStore): HTMLSelectElement {
  const values: readonly (readonly [string, string])[] = BASES;
  const select = choose(values, 'compare with', (value) =>
    store.showFlame(
      value.startsWith(OTHER)
        ? { base: 'run', baseRun: value.slice(OTHER.length) }
        : { base: value as FlameBase, baseRun: null },
    ),
  );
  const group = h('optgroup', { label: 'Another trace' });
  const fill = () => {
    const runs = [...(store.others.value ?? [])];
    const options = runs.map(({ run, name, is_base: isBase }) =>
      h('option', { value: OTHER + run }, isBase ? `base trace: ${name}` : name),
    );
    const choice = store.flame.value;
    const chosen = choice?.base === 'run' ? choice.baseRun : null;
    if (chosen !== null && !runs.some(({ run }) => run === chosen)) {
      options.push(h('option', { value: OTHER + chosen }, chosen));
    }
    replaceChildren(group, ...options);
    if (options.length > 0 && !group.isConnected) select.append(group);
    select.value = baseValue(store);
  };
  store.others.watch(fill);
  store.flame.watch(fill);
  return select;
}

/** Not while the user types in it. */
function setText(input: HTMLInputElement, text: string): void {
  if (document.activeElement !== input) input.value = text;
}

/** A list to choose from. */
function choose<T extends string>(
  options: readonly (readonly [T, string])[],
  label: string,
  changed: (value: T) => void,
): HTMLSelectElement {
  const select = h('select', { 'aria-label': label });
  for (const [value, text] of options) select.append(h('option', { value }, text));
  select.addEventListener('change', () => changed(select.value as T));
  return select;
}

function closeButton(store: ViewerStore): HTMLElement {
  return h(
    'button',
    {
      title: 'close (g)',
      'aria-label': 'close the flame graph',
      on: { click: () => store.closeFlame() },
    },
    '×',
  );
}

/** The index of the selected span. */
function spanOf(store: ViewerStore): number | null {
  const selection = store.selection.value;
  return selection?.what === 'spans' ? selection.index : null;
}

function workerSelect(store: ViewerStore): HTMLSelectElement {
  const select = h('select', { 'aria-label': 'worker' }, h('option', { value: '' }, 'All threads'));
  const known = new Set<number>();
  for (const { worker, name } of store.summary.workers) {
    if (known.has(worker)) continue; // parts of one worker
    known.add(worker);
    select.append(h('option', { value: String(worker) }, name));
  }
  select.addEventListener('change', () =>
    store.showFlame({ worker: select.value === '' ? null : Number(select.value) }),
  );
  return select;
}

/** A box to tick; `set` shows it, or hides it where there is nothing to tick it for. */
function toggle(changed: (on: boolean) => void) {
  const box = h('input', { type: 'checkbox' });
  const name = h('span', {});
  const element = h('label', { class: 'check' }, box, name);
  box.addEventListener('change', () => changed(box.checked));
  return {
    element,
    set(on: boolean, shown: string | null): void {
      box.checked = on;
      element.classList.toggle('hidden', shown === null);
      if (shown !== null) name.textContent = shown;
    },
  };
}

function typed(hint: string, label: string, changed: (text: string) => void): HTMLInputElement {
  const input = h('input', { type: 'search', placeholder: hint, 'aria-label': label });
  let timer = 0;
  input.addEventListener('input', () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => changed(input.value), TYPING_PAUSE_MS);
  });
  return input;
}

function setEnabled(select: HTMLSelectElement, value: string, isEnabled: boolean): void {
  for (const option of select.options) {
    if (option.value === value) option.disabled = !isEnabled;
  }
}
