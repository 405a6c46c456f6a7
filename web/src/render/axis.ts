// The time axis in wall time (UTC) where the trace has a clock pair, else in time since its start;
// and the vertical lines that go on through the rows. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatClock, formatDuration } from '../base/format';
import { ticks, tickStep } from '../base/ticks';
import { span } from '../model/view';
import type { WallClock } from '../model/wall';
import { font, type Frame, placeOf } from './frame';

const LEAST_GAP_PX = 110;

/** Where the marks are, as [moment, label]. */
export function axisMarks(frame: Frame, clock: WallClock): [number, string][] {
  const length = span(frame.view);
  const gap = LEAST_GAP_PX * frame.ratio;
  const step = tickStep(length, frame.width, length < 1e6 * 10 ? gap * 1.25 : gap);
  const epoch = clock.epoch(frame.view.start);
  // From the view's start, so that large absolute times cost no precision.
  const stepInt = BigInt(Math.max(Math.round(step), 1));
  const phase =
    epoch === null ? 0 : frame.view.start - Number(((epoch % stepInt) + stepInt) % stepInt);
  return ticks(frame.view.start, frame.view.end, step, phase).map((at) => {
    const wall = clock.epoch(at);
    if (wall === null) return [at, formatDuration(at, 9)];
    // A mark stands on a whole step; what Float64 loses must not turn 17 s into 16.999999999 s.
    return [at, formatClock(((wall + stepInt / 2n) / stepInt) * stepInt, step)];
  });
}

export function drawAxis(frame: Frame, marks: [number, string][]): void {
  const { ctx, palette, ratio, width, height } = frame;
  ctx.fillStyle = palette.raised.css;
  ctx.fillRect(0, 0, width, height);
  ctx.font = font(frame, 11);
  ctx.textBaseline = 'middle';
  for (const [at, label] of marks) {
    const x = Math.round(placeOf(frame, at));
    ctx.fillStyle = palette.line.css;
    ctx.fillRect(x, height - 8 * ratio, ratio, 8 * ratio);
    ctx.fillStyle = palette.text.css;
    const isWhole = x + 4 * ratio + ctx.measureText(label).width < width;
    if (isWhole) ctx.fillText(label, x + 4 * ratio, height / 2);
  }
  ctx.fillStyle = palette.line.css;
  ctx.fillRect(0, height - ratio, width, ratio);
}

export function drawGrid(frame: Frame, marks: [number, string][]): void {
  frame.ctx.fillStyle = frame.palette.lineSoft.css;
  for (const [at] of marks) {
    frame.ctx.fillRect(Math.round(placeOf(frame, at)), 0, frame.ratio, frame.height);
  }
}
