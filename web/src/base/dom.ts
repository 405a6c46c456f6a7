// Elements in one call. Text is always set as text, so nothing from a trace is ever parsed as HTML.
// SPDX-License-Identifier: Apache-2.0

type Child = Node | string | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

export interface Attributes {
  class?: string;
  on?: Handlers;
  [name: string]: string | number | boolean | Handlers | undefined;
}

/** An element with attributes (false and undefined leave one out, true sets it empty). */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') {
      for (const [type, handler] of Object.entries(value as Handlers)) {
        element.addEventListener(type, handler as EventListener);
      }
    } else if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  append(element, children);
  return element;
}

export function replaceChildren(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child);
  }
}
