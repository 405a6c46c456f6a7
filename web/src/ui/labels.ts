// The labels left of the rows, as elements, so that a screen reader and the keyboard reach them:
// group headings fold, lane labels select the lane. Only those in sight exist.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatCount, formatShare } from '../base/format';
import { HEADING_PX, type Row, rowsIn } from '../model/layout';
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
    const heading = h(
      'button',
      {
        class: 'heading',
        'aria-expanded': group.isFolded ? 'false' : 'true',
        on: { click: () => store.toggleFold(group.kind) },
      },
      `${group.isFolded ? '▸' : '▾'} ${group.label} `,
      h('span', { class: 'soft' }, formatCount(group.count)),
    );
    heading.style.top = `${group.top}px`;
    out.push(heading);
  }
  for (const row of rowsIn(layout, top, bottom)) {
    if (row.label !== '') out.push(label(store, row));
  }
  // The focus stays on a heading that is drawn again.
  const focused = into.contains(document.activeElement)
    ? document.activeElement?.textContent
    : null;
  replaceChildren(into, ...out);
  if (focused) {
    const again = out.find((element) => element.textContent?.slice(2) === focused.slice(2));
    again?.focus();
  }
}

function label(store: ViewerStore, row: Row): HTMLElement {
  const isFocused = row.kind === 'workers' && store.focusLane.value === row.id;
  const worker = row.kind === 'workers' ? store.summary.workers[row.id] : undefined;
  const note = worker
    ? h('small', { class: 'ellipsis' }, `${formatShare(worker.busy_ns / store.durationNs)} busy`)
    : null;
  const element = h(
    'div',
    { class: `row two${isFocused ? ' is-focused' : ''}`, title: row.title },
    h('span', { class: 'ellipsis' }, row.label),
    note,
  );
  element.style.top = `${row.top}px`;
  element.style.height = `${row.height}px`;
  return element;
}
