// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { LaneTile } from '../model/tracks';
import { paint, pollStep } from './palette';
import { bandsOf, LaneColumns } from './raster';

const tile = (bins: [number, number, number][]): LaneTile =>
  ({
    bin: Uint32Array.from(bins, (row) => row[0]),
    poll: Float32Array.from(bins, (row) => row[1]),
    park: new Float32Array(bins.length),
    wait: new Float32Array(bins.length),
    maxdur: Float32Array.from(bins, (row) => row[2]),
  }) as unknown as LaneTile;

it('splits a bin over the pixels that it touches, so that time is neither lost nor made', () => {
  const columns = new LaneColumns();
  columns.reset(4);
  columns.add(tile([[0, 1, 5]]), 0, 1, 0.75, 1.5, 4);
  expect([...columns.poll.subarray(0, 4)]).toEqual([0.25, 1, 0.25, 0]);
});

it('keeps the longest poll of all bins in a pixel', () => {
  const columns = new LaneColumns();
  columns.reset(1);
  columns.add(
    tile([
      [0, 0.5, 10],
      [1, 0.1, 2e7],
      [2, 1, 30],
    ]),
    0,
    3,
    0,
    1 / 3,
    1,
  );
  expect(columns.maxdur[0]).toBe(2e7);
  expect(columns.poll[0]).toBeCloseTo(1.6 / 3, 5);
});

it('starts anew for each row, also after a wider one', () => {
  const columns = new LaneColumns();
  columns.reset(8);
  columns.add(
    tile([
      [0, 1, 1],
      [5, 1, 1],
    ]),
    0,
    2,
    0,
    1,
    8,
  );
  columns.reset(4);
  expect([...columns.poll.subarray(0, 4)]).toEqual([0, 0, 0, 0]);
});

it('keeps the bands of a lane apart at any height', () => {
  for (let height = 20; height < 100; height += 1) {
    const bands = bandsOf(height);
    expect(bands.waitEnd).toBeLessThan(bands.pollStart);
    expect(bands.pollStart).toBeLessThan(bands.pollEnd);
    expect(bands.pollEnd).toBeLessThan(bands.parkStart);
    expect(bands.parkStart).toBeLessThan(height - 1);
  }
});

it('colours by duration, each step ten times the one before', () => {
  expect([1, 1e4, 1e5, 1e6, 1e7, 1e8, 1e12].map(pollStep)).toEqual([0, 1, 2, 3, 4, 5, 5]);
});

it('packs a colour as ImageData wants it', () => {
  expect(paint(' #102030').pixel.toString(16)).toBe('ff302010');
});

it('writes in black or white, whichever stands out more', () => {
  expect(paint('#f0883e').ink).toBe('#000000');
  expect(paint('#bd1f2d').ink).toBe('#ffffff');
});
