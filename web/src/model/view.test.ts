// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import {
  clamp,
  fitAll,
  fitRange,
  LEAST_SPAN_NS,
  pan,
  reveal,
  span,
  timeToX,
  xToTime,
  zoom,
} from './view';

const DURATION = 1e9;

it('turns a moment into a place and back', () => {
  const view = { start: 100, end: 300 };
  expect(timeToX(view, 1000, 200)).toBe(500);
  expect(xToTime(view, 1000, timeToX(view, 1000, 123))).toBeCloseTo(123);
});

it('keeps the moment under the pointer where it is while zooming', () => {
  let view = fitAll(DURATION);
  const at = 0.37e9;
  const x = timeToX(view, 1600, at);
  for (let i = 0; i < 40; i += 1) view = zoom(view, 0.8, at, DURATION);
  expect(timeToX(view, 1600, at)).toBeCloseTo(x, 3);
});

it('never zooms below the least span nor beyond the whole trace', () => {
  let view = fitAll(DURATION);
  for (let i = 0; i < 200; i += 1) view = zoom(view, 0.5, 0.5e9, DURATION);
  expect(span(view)).toBeCloseTo(LEAST_SPAN_NS, 1);
  for (let i = 0; i < 200; i += 1) view = zoom(view, 2, 0.5e9, DURATION);
  expect(view).toEqual(fitAll(DURATION));
});

it('stops at the ends of the trace while panning, without changing the zoom', () => {
  const view = pan({ start: 0.9e9, end: 0.95e9 }, 50, DURATION);
  expect(view.end).toBe(fitAll(DURATION).end);
  expect(span(view)).toBeCloseTo(0.05e9);
});

it('shows a trace of one event', () => {
  expect(span(fitAll(0))).toBeGreaterThanOrEqual(LEAST_SPAN_NS);
  expect(clamp({ start: 0, end: 1e9 }, 0)).toEqual(fitAll(0));
});

it('fits a range with room on both sides', () => {
  const view = fitRange(0.4e9, 0.5e9, 0.5, DURATION);
  expect(view.start).toBeCloseTo(0.35e9);
  expect(view.end).toBeCloseTo(0.55e9);
});

it('moves to a moment only when it is not well in sight', () => {
  const view = { start: 0.1e9, end: 0.2e9 };
  expect(reveal(view, 0.15e9, DURATION)).toBe(view);
  expect(reveal(view, 0.5e9, DURATION)).toEqual({ start: 0.45e9, end: 0.55e9 });
});
