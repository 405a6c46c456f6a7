// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { WallClock } from '../model/wall';
import { axisMarks } from './axis';
import type { Frame } from './frame';

const frame = (start: number, end: number) =>
  ({ view: { start, end }, width: 800, ratio: 1 }) as unknown as Frame;

it('labels whole steps of wall time, however odd the place of the view is', () => {
  const clock = new WallClock([{ at_ns: 123.7, realtime_ns: '1782146175256123457' }]);
  for (let shift = 0; shift < 50; shift += 1) {
    const start = -4.2e7 + shift * 1_234_567.891;
    const labels = axisMarks(frame(start, start + 4.26e9), clock).map(([, label]) => label);
    expect(new Set(labels).size, labels.join(' ')).toBe(labels.length);
    expect(labels.slice(0, 2)).toEqual(['16:36:16', '16:36:17']);
  }
});

it('counts from the start in a trace without a wall clock', () => {
  const marks = axisMarks(frame(0, 1e9), new WallClock([]));
  expect(marks[1]).toEqual([2e8, '200 ms']);
});
