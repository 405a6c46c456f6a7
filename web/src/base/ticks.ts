// Where the marks of a time axis go: round steps of wall time (1, 2, 5 × 10^n below a second, then
// seconds, minutes and hours), so that labels are round too. Pure.
// SPDX-License-Identifier: Apache-2.0

const SECOND = 1e9;
const LONG_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400,
];

/** The least round step that leaves at least `leastPx` between marks. */
export function tickStep(spanNs: number, widthPx: number, leastPx: number): number {
  const least = (spanNs * leastPx) / Math.max(widthPx, 1);
  if (least > SECOND / 2) {
    for (const seconds of LONG_STEPS) if (seconds * SECOND >= least) return seconds * SECOND;
    return Math.ceil(least / (86400 * SECOND)) * 86400 * SECOND;
  }
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)));
  for (const digit of [1, 2, 5]) if (digit * power >= least * 0.999999) return digit * power;
  return 10 * power;
}

/**
 * The marks in [start, end]. `phaseNs` is where wall time is a whole multiple of the step, as an
 * offset from time 0 (0 without a wall clock).
 */
export function ticks(start: number, end: number, step: number, phaseNs: number): number[] {
  const out: number[] = [];
  const first = Math.ceil((start - phaseNs) / step);
  for (let i = first; i * step + phaseNs <= end && out.length < 1000; i += 1) {
    out.push(i * step + phaseNs);
  }
  return out;
}
