// The labels left of the rows, as elements, so that a screen reader and the keyboard reach them:
// group headings fold, lane labels select the lane. Only those in sight exist.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatCount, unitName } from '../base/format';
import {
  type Group,
  HEADING_PX,
  LANE_PX,
  MOST_ROWS,
  numberFields,
  type Row,
  rowsIn,
  valueField,
} from '../model/layout';
import { busyText } from '../model/loss';
import type { CustomType } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';

export function drawLabels(
  store: ViewerStore,
  into: HTMLElement,
  top: number,
  bottom: number,
): void {
  const layout = store.layout.value;
  const out: HTMLElement[] = [];
  for (const group of layout.groups) {
    if (group.top + HEADING_PX < top || group.top > bottom) continue;
    out.push(...heading(store, group));
  }
  for (const row of rowsIn(layout, top, bottom)) {
    if (row.label !== '' || isFocused(store, row)) out.push(label(store, row));
  }
  // The focus stays on what is drawn again: headings, pagers, choices.
  const active = document.activeElement;
  const key = active instanceof HTMLElement && into.contains(active) ? active.dataset['key'] : null;
  replaceChildren(into, ...out);
  if (!key) return;
  const again = into.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  again?.focus({ preventScroll: true });
}

const isFocused = (store: ViewerStore, row: Row) =>
  store.focusRow.value?.kind === row.kind && store.focusRow.value.id === row.id;

/** Folds the group; with more rows than a page holds, says which are seen and turns pages. */
function heading(store: ViewerStore, group: Group): HTMLElement[] {
  const { kind, page, pages, rowsTotal, isFolded } = group;
  const fold = h(
    'button',
    {
      class: 'heading',
      'data-key': kind,
      'aria-expanded': isFolded ? 'false' : 'true',
      on: { click: () => store.toggleFold(kind) },
    },
    `${isFolded ? '▸' : '▾'} ${group.label} `,
    h('span', { class: 'soft' }, formatCount(group.count)),
  );
  fold.style.top = `${group.top}px`;
  if (pages < 2 || isFolded) return [fold];
  const first = page * MOST_ROWS + 1;
  const last = Math.min((page + 1) * MOST_ROWS, rowsTotal);
  const turn = (text: string, title: string, to: number) =>
    h(
      'button',
      {
        title,
        'aria-label': `${group.label}: ${title}`,
        'data-key': `${kind} ${text}`,
        disabled: to < 0 || to >= pages,
        on: { click: () => store.turnPage(kind, to) },
      },
      text,
    );
  const range = `rows ${formatCount(first)} to ${formatCount(last)} of ${formatCount(rowsTotal)}`;
  const pager = h(
    'div',
    { class: 'pager', role: 'group', 'aria-label': `${group.label}: ${range}` },
    turn('‹', `rows before these ${formatCount(MOST_ROWS)}`, page - 1),
    h('span', {}, range),
    turn('›', 'rows after these', page + 1),
  );
  pager.style.top = `${group.top}px`;
  return [fold, pager];
}

/** Which number of a custom type its row draws; null where there is nothing to choose. */
function fieldChoice(store: ViewerStore, row: Row): HTMLElement | null {
  const type = row.kind === 'custom' ? store.summary.custom[row.id] : undefined;
  const fields = type ? numberFields(type) : [];
  const drawn = valueField(type, store.choices.value.fields);
  if (!type || !drawn) return null;
  const text = (field: CustomType['fields'][number]) =>
    field.unit ? `${field.name} (${unitName(field.unit)})` : field.name;
  if (fields.length === 1) return h('small', { class: 'ellipsis' }, text(drawn));
  const choice = h('select', {
    'aria-label': `${type.type}: the field that is drawn`,
    'data-key': `field ${type.type}`,
  });
  for (const field of fields) {
    choice.append(
      h('option', { value: field.name, selected: field.name === drawn.name }, text(field)),
    );
  }
  choice.addEventListener('change', () => store.drawBy(type.type, choice.value));
  return choice;
}

function label(store: ViewerStore, row: Row): HTMLElement {
  const worker = row.kind === 'workers' ? store.summary.workers[row.id] : undefined;
  const note = worker
    ? h('small', { class: 'ellipsis' }, busyText(worker.busy_ns, store.summary))
    : fieldChoice(store, row);
  const isLow = note !== null || row.height < LANE_PX;  // room for one line
  const element = h(
    'div',
    { class: `row two${isFocused(store, row) ? ' is-focused' : ''}`, title: row.title },
    h('span', { class: isLow ? 'ellipsis' : 'two-lines' }, row.label || row.title),
    note,
  );
  element.style.top = `${row.top}px`;
  element.style.height = `${row.height}px`;
  return element;
}
