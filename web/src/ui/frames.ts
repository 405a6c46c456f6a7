// A call stack, leaf first: the names of its frames, or their addresses where no symbol is known.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { shortPlace } from '../base/format';
import type { StackFrame } from '../protocol/types';

export function stackFrames(frames: readonly StackFrame[]): HTMLElement {
  const list = h('ol', { class: 'frames' });
  for (const frame of frames) {
    const line = frame.line === null ? '' : `:${frame.line}`;
    const place = frame.file === null ? '' : `${shortPlace(frame.file)}${line}`;
    const title = `${frame.file ?? 'source file not known'}${line} ${frame.address}`;
    list.append(
      h(
        'li',
        { title },
        h('code', {}, frame.name ?? frame.address),
        place === '' ? null : h('span', { class: 'soft' }, ` ${place}`),
        frame.inlined ? h('span', { class: 'tag' }, 'inlined') : null,
      ),
    );
  }
  return h('section', { 'aria-label': 'call stack' }, h('h3', {}, 'Call stack'), list);
}
