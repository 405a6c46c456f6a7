// The box beside the pointer.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';

export interface TooltipText {
  title: string;
  lines: string[];
}

export class Tooltip {
  readonly element = h('div', { class: 'tooltip hidden', role: 'tooltip' });

  show(text: TooltipText, x: number, y: number): void {
    replaceChildren(
      this.element,
      h('b', {}, text.title),
      ...text.lines.map((line) => h('div', {}, line)),
    );
    this.element.classList.remove('hidden');
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = x + 14 + width > innerWidth ? x - width - 10 : x + 14;
    const top = y + 14 + height > innerHeight ? y - height - 10 : y + 14;
    this.element.style.left = `${Math.max(left, 0)}px`;
    this.element.style.top = `${Math.max(top, 0)}px`;
  }

  hide(): void {
    this.element.classList.add('hidden');
  }
}
