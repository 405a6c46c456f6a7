// What the flame graph is of, and how it is shown: one row of controls.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { formatDuration } from '../base/format';
import type { FlameChoice } from '../model/flame';
import type { ViewerStore } from '../store/viewer_store';

const SCOPES: readonly [FlameChoice['scope'], string][] = [
  ['screen', 'On screen'],
  ['range', 'Measured range'],
  ['stretch', 'Kept stretch'],
  ['all', 'Whole trace'],
];
const TYPING_PAUSE_MS = 300;

export function flameControls(store: ViewerStore, found: HTMLElement): HTMLElement {
  const scope = h('select', { 'aria-label': 'stretch of time' });
  for (const [name, text] of SCOPES) scope.append(h('option', { value: name }, text));
  scope.addEventListener('change', () => {
    const chosen = scope.value as FlameChoice['scope'];
    const mark = store.mark.value;
    if (chosen !== 'stretch' || !mark) return store.showFlame({ scope: chosen });
    store.showFlame({ scope: chosen, stretch: [mark.start, mark.end] });
  });
  const worker = workerSelect(store);
  const task = toggle('Task', (on) => store.showFlame({ task: on ? store.task.value : null }));
  const inSpan = toggle('Span', (on) => store.showFlame({ span: on ? spanOf(store) : null }));
  const inverted = toggle('Inverted', (on) => store.showFlame({ inverted: on }));
  const label = typed('label: tenant=acme', 'label', (text) => store.showFlame({ label: text }));
  const search = typed('find a function', 'find a function', (text) =>
    store.showFlame({ search: text }),
  );
  const table = toggle('Table', (on) => store.showFlame({ shows: on ? 'table' : 'icicle' }));
  const length = h('span', { class: 'soft' });
  const update = () => {
    const choice = store.flame.value;
    if (!choice) return;
    const stretch = store.flameStretch();
    scope.value = store.flameScope();
    setEnabled(scope, 'range', store.range.value !== null);
    setEnabled(scope, 'stretch', store.mark.value !== null || choice.stretch !== null);
    const lengthNs = stretch ? stretch[1] - stretch[0] : store.durationNs;
    length.textContent = choice.span === null ? formatDuration(lengthNs) : ''; // not the span's
    worker.value = choice.worker === null ? '' : String(choice.worker);
    const id = choice.task ?? store.task.value;
    task.set(choice.task !== null, id === null ? null : `Task ${id}`);
    const span = choice.span ?? spanOf(store);
    inSpan.set(choice.span !== null, span === null ? null : `Span #${span}`);
    inverted.set(choice.inverted, 'Inverted');
    table.set(choice.shows === 'table', 'Table');
    for (const [input, text] of [
      [label, choice.label],
      [search, choice.search],
    ] as const) {
      if (document.activeElement !== input) input.value = text;
    }
  };
  const { flame, range, mark, task: ofTask, selection, view } = store;
  for (const part of [flame, range, mark, ofTask, selection, view]) {
    (part as { watch(listener: () => void): unknown }).watch(update);
  }
  return h(
    'div',
    { class: 'flame-controls' },
    h('h2', {}, 'Flame graph'),
    scope,
    length,
    worker,
    task.element,
    inSpan.element,
    label,
    inverted.element,
    table.element,
    h('span', { class: 'spacer' }),
    found,
    search,
    closeButton(store),
  );
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
function toggle(text: string, changed: (on: boolean) => void) {
  const box = h('input', { type: 'checkbox' });
  const name = h('span', {}, text);
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
