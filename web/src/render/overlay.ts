// What lies over the rows: times in which events were lost (hatched) or the platform stalled
// (shaded), the bounds of the trace, the measured range, the selected slice, the pointer's line.
// Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatDuration } from '../base/format';
import type { Loss, Stall } from '../protocol/types';
import { font, type Frame, placeOf } from './frame';

/** Diagonal lines over [left, right): loss is never shown by colour alone. */
export function drawHatch(
  frame: Frame,
  left: number,
  right: number,
  top: number,
  bottom: number,
): void {
  const { ctx, palette, ratio } = frame;
  const from = Math.max(left, 0);
  const to = Math.min(right, frame.width);
  if (to <= from) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, top, to - from, bottom - top);
  ctx.clip();
  ctx.strokeStyle = palette.loss.css;
  ctx.globalAlpha = 0.55;
  ctx.lineWidth = ratio;
  const gap = 7 * ratio;
  ctx.beginPath();
  const height = bottom - top;
  for (let x = Math.floor((from - height) / gap) * gap; x < to; x += gap) {
    ctx.moveTo(x, bottom);
    ctx.lineTo(x + height, top);
  }
  ctx.stroke();
  ctx.restore();
}

export function drawLoss(frame: Frame, losses: readonly Loss[]): void {
  for (const loss of losses) {
    const left = placeOf(frame, loss.first_ns);
    const right = Math.max(placeOf(frame, loss.last_ns), left + 4 * frame.ratio);
    if (right >= 0 && left <= frame.width) drawHatch(frame, left, right, 0, frame.height);
  }
}

// A stretch of which less than this share was stalled says little about what lies in it.
const LEAST_SHADED_SHARE = 0.1;

function isShaded(stall: Stall): boolean {
  const least = LEAST_SHADED_SHARE * (stall.end_ns - stall.begin_ns);
  return stall.is_excuse && (stall.stalled_ns === null || stall.stalled_ns >= least);
}

/**
 * Shades the times of platform stalls over all rows, below a bar at the top. Those of which little
 * was stalled have the bar alone, and those that may be the process's own doing a thin one.
 */
export function drawStalls(frame: Frame, stalls: readonly Stall[]): void {
  const { ctx, palette, ratio } = frame;
  ctx.fillStyle = palette.stall.css;
  for (const stall of stalls) {
    const left = Math.max(placeOf(frame, stall.begin_ns), 0);
    const right = Math.min(Math.max(placeOf(frame, stall.end_ns), left + 2 * ratio), frame.width);
    if (right <= 0 || left >= frame.width) continue;
    ctx.globalAlpha = 0.18;
    if (isShaded(stall)) ctx.fillRect(left, 0, right - left, frame.height);
    ctx.globalAlpha = 0.85;
    ctx.fillRect(left, 0, right - left, (stall.is_excuse ? 5 : 2) * ratio);
  }
  ctx.globalAlpha = 1;
}

/** Shades what lies before the trace's first and after its last record. */
export function drawBounds(frame: Frame, durationNs: number): void {
  frame.ctx.fillStyle = frame.palette.shade;
  const start = placeOf(frame, 0);
  const end = placeOf(frame, durationNs);
  if (start > 0) frame.ctx.fillRect(0, 0, start, frame.height);
  if (end < frame.width) frame.ctx.fillRect(end, 0, frame.width - end, frame.height);
}

export function drawRange(frame: Frame, range: readonly [number, number]): void {
  const { ctx, palette, ratio } = frame;
  const left = placeOf(frame, range[0]);
  const right = placeOf(frame, range[1]);
  ctx.fillStyle = palette.selection.css;
  ctx.globalAlpha = 0.14;
  ctx.fillRect(left, 0, right - left, frame.height);
  ctx.globalAlpha = 1;
  ctx.fillRect(left, 0, ratio, frame.height);
  ctx.fillRect(right - ratio, 0, ratio, frame.height);
  const text = formatDuration(range[1] - range[0]);
  ctx.font = font(frame, 11, 600);
  ctx.textBaseline = 'top';
  const width = ctx.measureText(text).width + 10 * ratio;
  const middle = (Math.max(left, 0) + Math.min(right, frame.width)) / 2 - width / 2;
  const x = Math.min(Math.max(middle, 0), frame.width - width);
  ctx.fillRect(x, 2 * ratio, width, 18 * ratio);
  ctx.fillStyle = palette.bg.css;
  ctx.fillText(text, x + 5 * ratio, 5 * ratio);
}

/** A frame around [start, end] of a row. */
export function drawMark(
  frame: Frame,
  start: number,
  end: number,
  top: number,
  height: number,
): void {
  const { ctx, palette, ratio } = frame;
  const left = Math.max(placeOf(frame, start), -4 * ratio);
  const right = Math.min(placeOf(frame, end), frame.width + 4 * ratio);
  ctx.strokeStyle = palette.selection.css;
  ctx.lineWidth = 2 * ratio;
  const least = 4 * ratio;
  const width = Math.max(right - left, least);
  const x = right - left < least ? (left + right - least) / 2 : left;
  ctx.strokeRect(x - ratio, top + ratio, width + 2 * ratio, height - 2 * ratio);
}

/** Lines at the moments of a frame of the flame graph, with a band at the top. */
export function drawMoments(frame: Frame, moments: readonly { at_ns: number }[]): void {
  const { ctx, palette, ratio } = frame;
  ctx.fillStyle = palette.selection.css;
  let last = Number.NEGATIVE_INFINITY;
  for (const { at_ns: at } of moments) {
    const x = Math.round(placeOf(frame, at));
    if (x === last || x < 0 || x > frame.width) continue;
    last = x;
    ctx.globalAlpha = 0.3;
    ctx.fillRect(x, 0, ratio, frame.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(x, 0, ratio, 6 * ratio);
  }
}

export function drawPointerLine(frame: Frame, x: number): void {
  frame.ctx.fillStyle = frame.palette.textSoft.css;
  frame.ctx.globalAlpha = 0.6;
  frame.ctx.fillRect(Math.round(x), 0, frame.ratio, frame.height);
  frame.ctx.globalAlpha = 1;
}
