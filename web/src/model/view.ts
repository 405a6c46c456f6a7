// The stretch of time on screen, and how zoom and pan change it. One coordinate function for all
// panels, so that they can't drift against each other. Pure.
// SPDX-License-Identifier: Apache-2.0

/** ns from the trace's start; end > start. */
export interface View {
  start: number;
  end: number;
}

/** Never narrower than this: a pixel then is well under a nanosecond. */
export const LEAST_SPAN_NS = 100;
/** The whole trace fills this share of the width, so that its ends are seen. */
const FIT_MARGIN = 0.01;

export const span = (view: View) => view.end - view.start;
export const timeToX = (view: View, width: number, at: number) =>
  ((at - view.start) / span(view)) * width;
export const xToTime = (view: View, width: number, x: number) =>
  view.start + (x / width) * span(view);

/** The whole trace with a little margin; a trace of no length gets the least span around it. */
export function fitAll(durationNs: number): View {
  const length = Math.max(durationNs, LEAST_SPAN_NS);
  const margin = length * FIT_MARGIN;
  return { start: -margin, end: length + margin };
}

/** [start, end] with `share` of its length free on both sides. */
export function fitRange(start: number, end: number, share: number, durationNs: number): View {
  const length = Math.max(end - start, LEAST_SPAN_NS / (1 + 2 * share));
  return clamp({ start: start - length * share, end: start + length * (1 + share) }, durationNs);
}

/** Zooms by `factor` (below 1: in) around the moment `at`, which keeps its place on screen. */
export function zoom(view: View, factor: number, at: number, durationNs: number): View {
  const length = limit(span(view) * factor, durationNs);
  const share = (at - view.start) / span(view);
  const start = at - share * length;
  return clamp({ start, end: start + length }, durationNs);
}

/** Moves by `share` of what is seen. */
export function pan(view: View, share: number, durationNs: number): View {
  const by = span(view) * share;
  return clamp({ start: view.start + by, end: view.end + by }, durationNs);
}

/** The view moved so that `at` is in its middle, if it wasn't in the inner 80 % already. */
export function reveal(view: View, at: number, durationNs: number): View {
  const share = (at - view.start) / span(view);
  if (share > 0.1 && share < 0.9) return view;
  const half = span(view) / 2;
  return clamp({ start: at - half, end: at + half }, durationNs);
}

function limit(length: number, durationNs: number): number {
  const whole = span(fitAll(durationNs));
  return Math.min(Math.max(length, LEAST_SPAN_NS), whole);
}

/** Keeps the view inside the whole trace with its margin. */
export function clamp(view: View, durationNs: number): View {
  const whole = fitAll(durationNs);
  const length = limit(span(view), durationNs);
  const start = Math.min(Math.max(view.start, whole.start), whole.end - length);
  return { start, end: start + length };
}
