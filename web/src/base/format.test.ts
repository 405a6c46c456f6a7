// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatClock,
  formatCount,
  formatDate,
  formatDuration,
  formatRange,
  formatShare,
  shortPlace,
} from './format';

describe('formatDuration', () => {
  it.each([
    [0, '0 ns'],
    [999, '999 ns'],
    [999.9, '1 µs'],
    [1500, '1.5 µs'],
    [20e6, '20 ms'],
    [1.2345e9, '1.23 s'],
    [90e9, '1.5 min'],
    [-5e6, '-5 ms'],
  ])('shows %d ns as %s', (ns, text) => expect(formatDuration(ns)).toBe(text));
  it('shows what is not known as unknown, never as zero', () => {
    expect(formatDuration(null)).toBe('unknown');
    expect(formatDuration(Number.NaN)).toBe('unknown');
    expect(formatCount(undefined)).toBe('unknown');
    expect(formatShare(null)).toBe('unknown');
    expect(formatShare(1e-7)).toBe('under 0.01 %');
    expect(formatShare(0)).toBe('0 %');
    expect(formatBytes(Number.NaN)).toBe('unknown');
  });
});

describe('formatCount, formatBytes, formatShare', () => {
  it('groups thousands with commas in any locale', () => {
    expect(formatCount(1234567)).toBe('1,234,567');
    expect(formatCount(999)).toBe('999');
  });
  it('uses binary units', () => {
    expect(formatBytes(512)).toBe('512 B');
    expect(formatBytes(3396709)).toBe('3.24 MiB');
  });
  it('shows shares in percent', () => expect(formatShare(0.1234)).toBe('12.3 %'));
});

describe('formatClock', () => {
  const at = 1_782_136_202_123_456_789n;
  it('is in UTC with the decimals that the resolution needs', () => {
    expect(formatClock(at, 1e9)).toBe('13:50:02');
    expect(formatClock(at, 1e6)).toBe('13:50:02.123');
    expect(formatClock(at, 1)).toBe('13:50:02.123456789');
  });
  it('holds before 1970 too', () => expect(formatClock(-1n, 1)).toBe('23:59:59.999999999'));
  it('names the day', () => expect(formatDate(at)).toBe('2026-06-22'));
});

describe('shortPlace', () => {
  it('keeps the last two components', () => {
    expect(shortPlace('/a/b/src/main.rs:1:2')).toBe('src/main.rs:1:2');
    expect(shortPlace('main.cc:3')).toBe('main.cc:3');
  });
});

describe('formatRange', () => {
  it('reads values by their unit', () => {
    expect(formatRange(32_610_000, 1_020_000_000, 'ns')).toBe('32.6 ms to 1.02 s');
    expect(formatRange(0, 4_012_000, 'us')).toBe('0 µs to 4.01 s');
    expect(formatRange(553_000, 5_210_000, 'bytes')).toBe('540 KiB to 4.97 MiB');
    expect(formatRange(8, 2_095_104, null)).toBe('8 to 2,095,104');
    expect(formatRange(1, 7, 'count')).toBe('1 to 7');
    expect(formatRange(0.25, 21.5, 'celsius')).toBe('0.25 celsius to 21.5 celsius');
    expect(formatRange(19, 19, null)).toBe('19');
  });
  it('shows two ends that differ as two texts', () => {
    expect(formatRange(21_880e9, 21_890e9, 'ns')).toBe('6.078 h to 6.081 h');
  });
});
