// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { BINS, binNs, levelFor, neighbours, parent, tileNs, tilesIn, tileStart } from './tiles';

it('chooses bins of at most a pixel and more than half of one', () => {
  for (const spanNs of [1e3, 12345, 1e6, 7.7e9, 3.6e12]) {
    const level = levelFor({ start: 0, end: spanNs }, 1600);
    const pixel = spanNs / 1600;
    expect(binNs(level)).toBeLessThanOrEqual(pixel);
    expect(binNs(level) * 2).toBeGreaterThan(pixel);
  }
});

it('covers the view without a gap and with few tiles', () => {
  const view = { start: 123456, end: 123456 + 5e6 };
  const level = levelFor(view, 1600);
  const tiles = tilesIn(view, level, 1e9);
  expect(tileStart(tiles[0] ?? { level, index: -1 })).toBeLessThanOrEqual(view.start);
  const last = tiles[tiles.length - 1] ?? { level, index: -1 };
  expect(tileStart(last) + tileNs(level)).toBeGreaterThan(view.end);
  expect(tiles.length).toBeLessThanOrEqual(Math.ceil((2 * 1600) / BINS) + 1);
});

it('asks for nothing outside the trace', () => {
  expect(tilesIn({ start: -500, end: 2000 }, 0, 1023)).toEqual([{ level: 0, index: 0 }]);
  expect(tilesIn({ start: 5000, end: 6000 }, 0, 1023)).toEqual([]);
});

it('prefetches the sides and a coarser level, never what is in view', () => {
  const view = { start: 2000, end: 3000 };
  const wanted = neighbours(view, 0, 1e6);
  expect(wanted).toContainEqual({ level: 0, index: 0 });
  expect(wanted).toContainEqual({ level: 0, index: 3 });
  expect(wanted).toContainEqual({ level: 2, index: 0 });
  expect(wanted).not.toContainEqual({ level: 0, index: 1 });
});

it('finds the coarser tile that covers a tile', () => {
  expect(parent({ level: 3, index: 13 }, 5)).toEqual({ level: 5, index: 3 });
});
