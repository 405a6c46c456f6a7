// The functions of a flame tree as a table: self and total, each with its percent of the whole.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { plural } from '../base/format';
import { flameMatches, flamePercent, type FlameTree, flameWeight } from '../model/flame';

const MOST_ROWS = 500;

export function flameTable(
  tree: FlameTree,
  search: string,
  open: (name: string) => void,
): HTMLElement {
  const { reply } = tree;
  const matches = flameMatches(tree, search);
  const shown = reply.functions
    .map((entry, index) => ({ entry, index }))
    .filter(({ index }) => matches === null || matches.functions.has(index));
  const rows = shown.slice(0, MOST_ROWS).map(({ entry }) =>
    h(
      'tr',
      {},
      h('td', { class: 'number' }, flameWeight(reply, entry.self)),
      h('td', { class: 'number' }, flamePercent(reply, entry.self)),
      h('td', { class: 'number' }, flameWeight(reply, entry.total)),
      h('td', { class: 'number' }, flamePercent(reply, entry.total)),
      h(
        'td',
        { class: 'name', title: entry.name },
        h('button', { class: 'link mono', on: { click: () => open(entry.name) } }, entry.name),
      ),
      h('td', { class: 'soft' }, entry.module),
    ),
  );
  const lacking = shown.length - rows.length + reply.functions_left_out;
  const head = ['Self', '', 'Total', '', 'Function', 'Module'].map((text, at) =>
    h(
      'th',
      { scope: 'col', class: at < 4 ? 'number' : '' },
      text || h('span', { class: 'visually-hidden' }, 'percent'),
    ),
  );
  return h(
    'div',
    {},
    h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
    lacking > 0 ? h('p', { class: 'soft' }, `and ${plural(lacking, 'function')} with less`) : null,
  );
}
