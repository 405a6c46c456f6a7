// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { niceTop } from './queues';

it('ends a scale at a round number', () => {
  expect([0, 1, 3, 5, 51, 999].map((most) => niceTop(most, null))).toEqual([1, 1, 5, 5, 100, 1000]);
});

it('ends a scale of bytes at a round number of the unit that it is read in', () => {
  expect(niceTop(300, 'bytes')).toBe(500);
  expect(niceTop(13 * 1024, 'bytes')).toBe(20 * 1024);
  expect(niceTop(180 * 1024 ** 2 + 1, 'bytes')).toBe(200 * 1024 ** 2);
  expect(niceTop(1024 ** 3, 'bytes')).toBe(1024 ** 3);
  expect(niceTop(1010, 'bytes')).toBe(1024);
  expect(niceTop(1010 * 1024, 'bytes')).toBe(1024 ** 2);
});
