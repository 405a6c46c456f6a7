// The button that changes between light and dark.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import type { Signal } from '../base/signal';
import { type Theme, toggleTheme } from '../store/theme';

export function themeButton(theme: Signal<Theme>): HTMLElement {
  const button = h('button', { on: { click: () => toggleTheme(theme) } });
  theme.watch((value) => {
    button.textContent = value === 'dark' ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `switch to ${value === 'dark' ? 'light' : 'dark'} colours`);
  });
  return button;
}
