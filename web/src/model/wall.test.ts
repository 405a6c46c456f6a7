// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { WallClock } from './wall';

const HOUR = 3600_000_000_000n;
const R = 1_700_000_000_000_000_000n;
// The clock was set back by an hour between the two.
const stepped = new WallClock([
  { at_ns: 10e9, realtime_ns: String(R + 9_000_000_000n - HOUR) },
  { at_ns: 1e9, realtime_ns: String(R) },
]);

it('takes the nearest anchor, as the engine does', () => {
  expect(stepped.epoch(5.4e9)).toBe(R + 4_400_000_000n);
  expect(stepped.epoch(6e9)).toBe(R + 5_000_000_000n - HOUR);
  expect(stepped.epoch(11e9)).toBe(R + 10_000_000_000n - HOUR);
});

it('takes the first anchor for what lies before it', () => {
  expect(stepped.epoch(0)).toBe(R - 1_000_000_000n);
});

it('finds the way back on either side of a clock step', () => {
  for (const at of [0, 2e9, 5.4e9, 6e9, 11e9]) {
    expect(stepped.moment(stepped.epoch(at) ?? 0n)).toBe(at);
  }
});

it('knows no wall time without an anchor', () => {
  expect(new WallClock([]).epoch(5)).toBeNull();
  expect(new WallClock([]).moment(R)).toBeNull();
});

it('finds the moment of a wall time', () => {
  const clock = new WallClock([{ at_ns: 1e9, realtime_ns: String(R) }]);
  expect(clock.moment(R + 250_000_000n)).toBe(1.25e9);
});
