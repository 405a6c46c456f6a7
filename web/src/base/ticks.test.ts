// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { tickStep, ticks } from './ticks';

it('uses round steps that leave the room that was asked for', () => {
  expect(tickStep(1e9, 1000, 100)).toBe(1e8);
  expect(tickStep(1.2e9, 1000, 100)).toBe(2e8);
  expect(tickStep(90e9, 1000, 100)).toBe(10e9);
  expect(tickStep(4 * 3600e9, 1000, 100)).toBe(1800e9);
  for (let spanNs = 100; spanNs < 1e15; spanNs *= 3.7) {
    const gap = (tickStep(spanNs, 1500, 110) / spanNs) * 1500;
    expect(gap).toBeGreaterThanOrEqual(109.9);
  }
});

it('puts marks on whole multiples of wall time', () => {
  expect(ticks(0, 10, 4, 1)).toEqual([1, 5, 9]);
  expect(ticks(-5, 5, 5, 0)).toEqual([-5, 0, 5]);
});
