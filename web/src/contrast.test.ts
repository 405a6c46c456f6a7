// What is drawn on the lanes can be told from them in both themes: 3 to 1, the bound for graphics
// of WCAG 2.2 (1.4.11); texts 4.5 to 1 (1.4.3). What carries a text of its own isn't held to it.
// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import css from './styles.css?raw';

const GRAPHICS = [
  'poll-0', 'poll-1', 'poll-2', 'poll-3', 'poll-4', 'poll-5', 'park', 'wait', 'queue', 'custom',
  'loss', 'stall', 'mini-busy', 'mini-max', 'selection', 'accent', 'focus',
  'part-on-cpu', 'part-blocked', 'part-async', 'part-delay', 'part-unknown',
];
const TEXTS: readonly [string, string][] = [
  ['text', 'bg'], ['text', 'lane-alt'], ['text', 'accent-soft'], ['text-soft', 'bg-raised'],
  ['text-soft', 'bg-sunken'], ['text-soft', 'accent-soft'], ['text-soft', 'lane-alt'],
  ['accent', 'bg'], ['info', 'info-bg'], ['warning', 'warning-bg'], ['critical', 'critical-bg'],
  ['loss', 'loss-bg'], ['on-accent', 'accent'],
];

function luminance(color: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

const [light, dark] = css.split("[data-theme='dark']");
for (const [theme, block] of [['light', light], ['dark', dark]] as const) {
  const colors = new Map(
    [...(block ?? '').matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6});/g)].map(([, name, hex]) => [
      name ?? '',
      hex ?? '',
    ]),
  );
  const between = (a: string, b: string) => contrast(colors.get(a) ?? '', colors.get(b) ?? '');
  it(`tells what is drawn from the lanes, ${theme}`, () => {
    const weak = GRAPHICS.filter((name) => !(between(name, 'lane') >= 3));
    expect(weak).toEqual([]);
  });
  it(`has texts that can be read, ${theme}`, () => {
    const weak = TEXTS.filter(([text, ground]) => !(between(text, ground) >= 4.5));
    expect(weak).toEqual([]);
  });
}
