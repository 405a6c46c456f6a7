// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { parseMoment } from './goto';
import { WallClock } from './wall';

const NOON = BigInt(Date.parse('2026-06-22T23:59:50Z')) * 1_000_000n;
const clock = new WallClock([{ at_ns: 0, realtime_ns: String(NOON) }]);

it.each([
  ['+1.5s', 1.5e9],
  ['250 ms', 250e6],
  ['3us', 3e3],
  ['2min', 120e9],
  ['23:59:51.25', 1.25e9],
  ['23:59:51', 1e9],
  ['2026-06-22 23:59:52', 2e9],
  ['2026-06-22T23:59:52Z', 2e9],
  [String(NOON + 5n), 5],
])('reads %s', (text, ns) => expect(parseMoment(text, clock)).toBe(ns));

it('takes a time of day after midnight as that of the next day', () => {
  expect(parseMoment('00:00:10', clock)).toBe(20e9);
});

it.each(['42', 'main.rs', '+5', '25:99:00', ''])('takes %s as no moment', (text) => {
  expect(parseMoment(text, clock)).toBeNull();
});

it('knows no time of day in a trace without a wall clock', () => {
  expect(parseMoment('12:00:00', new WallClock([]))).toBeNull();
  expect(parseMoment('1s', new WallClock([]))).toBe(1e9);
});
