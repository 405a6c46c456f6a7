// The functions of a flame tree as a table: self and total, each with its percent of the whole; of
// a difference both sides and the change.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { plural } from '../base/format';
import {
  flameMatches,
  flamePercent,
  type FlameTree,
  flameWeight,
  functionName,
  pointsText,
  sidesText,
} from '../model/flame';
import type { FlameFunction } from '../model/flame_choice';

const MOST_ROWS = 500;

export interface TableActions {
  find: (name: string) => void;
  around: (of: FlameFunction) => void;
}

export function flameTable(tree: FlameTree, search: string, actions: TableActions): HTMLElement {
  const { reply, diff } = tree;
  const matches = flameMatches(tree, search);
  const shown = reply.functions
    .map((entry, index) => ({ entry, index }))
    .filter(({ index }) => matches === null || matches.functions.has(index));
  const rows = shown
    .slice(0, MOST_ROWS)
    .map(({ entry, index }) =>
      h('tr', {}, ...numbers(tree, index), ...names(entry, functionName(reply, entry), actions)),
    );
  const lacking = shown.length - rows.length + reply.functions_left_out;
  const head = diff
    ? ['Change of self', 'Self', 'Change of total', 'Total']
    : ['Self', '', 'Total', ''];
  const cells = [...head, 'Function', '', 'Module'].map((text, at) =>
    h(
      'th',
      { scope: 'col', class: at < 4 ? 'number' : '' },
      text || h('span', { class: 'visually-hidden' }, at < 4 ? 'percent' : 'around it'),
    ),
  );
  return h(
    'div',
    {},
    h('table', {}, h('thead', {}, h('tr', {}, ...cells)), h('tbody', {}, ...rows)),
    lacking > 0 ? h('p', { class: 'soft' }, `and ${plural(lacking, 'function')} with less`) : null,
  );
}

function numbers(tree: FlameTree, index: number): HTMLElement[] {
  const { reply, diff } = tree;
  const entry = reply.functions[index];
  const sides = diff?.functions[index];
  const texts =
    diff && sides
      ? [sides.self, sides.total].flatMap((of) => [
          pointsText(diff, of),
          sidesText(diff, of).replace(/ \(.*\)$/, ''),
        ])
      : [entry?.self ?? 0, entry?.total ?? 0].flatMap((weight) => [
          flameWeight(reply, weight),
          flamePercent(reply, weight),
        ]);
  return texts.map((text) => h('td', { class: 'number' }, text));
}

function names(entry: FlameFunction, shown: string, actions: TableActions): HTMLElement[] {
  const find = () => actions.find(entry.name);
  const around = () => actions.around({ name: entry.name, module: entry.module });
  const label = `callers and callees of ${entry.name}`;
  return [
    h(
      'td',
      { class: 'name', title: shown },
      h('button', { class: 'link mono', on: { click: find } }, shown),
    ),
    h(
      'td',
      {},
      h(
        'button',
        { class: 'small', title: label, 'aria-label': label, on: { click: around } },
        '⇅',
      ),
    ),
    h('td', { class: 'soft' }, entry.module),
  ];
}
