// The list of keys, behind "?".
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';

export const KEYS: readonly [string, string][] = [
  ['W / S', 'zoom in / out at the pointer'],
  ['A / D', 'move left / right'],
  ['← →', 'move left / right by a step'],
  ['↑ ↓', 'row above / below'],
  ['+ / -', 'zoom in / out at the middle'],
  ['0', 'fit the whole trace'],
  ['f', 'zoom to the selection'],
  ['m', 'measure what is selected'],
  ['Backspace', 'back to the view before'],
  ['j / k', 'next / previous finding'],
  [', / .', 'previous / next poll in the lane'],
  ['Enter', 'select what is at the middle of the row'],
  ['t', 'select the task of the selection'],
  ['[ / ]', 'first / last poll of the task'],
  ['g', 'flame graph; its frames by arrows, Enter, Space'],
  ['/', 'search, or go to a time'],
  ['Esc', 'close, then unselect'],
  ['?', 'this list'],
];

const POINTER =
  'Wheel: zoom (with Shift: move; over the labels: scroll). Drag: move. Shift and drag: measure. ' +
  'Double click: zoom to what is under the pointer. Links: the address shows what you see.';

export function helpDialog(): HTMLDialogElement {
  const list = h('dl', { class: 'keys' });
  for (const [key, what] of KEYS) {
    list.append(h('dt', {}, h('kbd', {}, key)), h('dd', {}, what));
  }
  const close = h('button', { autofocus: true }, 'Close');
  const dialog = h(
    'dialog',
    { 'aria-labelledby': 'help-title' },
    h('h2', { id: 'help-title' }, 'Keys and pointer'),
    list,
    h(
      'p',
      { class: 'soft' },
      POINTER,
    ),
    close,
  );
  close.addEventListener('click', () => dialog.close());
  return dialog;
}
