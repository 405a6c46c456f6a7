// Light or dark: what the system prefers until the user chooses, and then that for ever.
// SPDX-License-Identifier: Apache-2.0
import { Signal } from '../base/signal';

export type Theme = 'light' | 'dark';
const KEY = 'dial9.theme';

export function createTheme(root: HTMLElement): Signal<Theme> {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const chosen = () => {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : null;
  };
  const theme = new Signal<Theme>(chosen() ?? (dark.matches ? 'dark' : 'light'));
  dark.addEventListener('change', () => {
    if (!chosen()) theme.set(dark.matches ? 'dark' : 'light');
  });
  // First of the listeners, so that those after it read the new colours.
  theme.watch((value) => root.setAttribute('data-theme', value));
  return theme;
}

export function toggleTheme(theme: Signal<Theme>): void {
  const next = theme.value === 'dark' ? 'light' : 'dark';
  localStorage.setItem(KEY, next);
  theme.set(next);
}
