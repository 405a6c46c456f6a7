// The whole trace in one strip: how busy all workers were, the longest poll, loss, findings, and
// the part that is on screen. Pure.
// SPDX-License-Identifier: Apache-2.0
import { timeToX, type View } from '../model/view';
import type { Columns } from '../protocol/columns';
import type { Frame } from './frame';
import { drawHatch } from './overlay';
import type { Paint } from './palette';

export interface Minimap {
  busy: Float32Array;
  maxdur: Float32Array;
  events: Uint32Array;
  loss: Uint8Array;
  find: Uint8Array;
}

export function minimapOf(columns: Columns): Minimap {
  return {
    busy: columns.f32('busy'),
    maxdur: columns.f32('maxdur'),
    events: columns.u32('events'),
    loss: columns.u8('loss'),
    find: columns.u8('find'),
  };
}

const HANDLE_PX = 3;

/** `frame.view` is the whole trace with its margins; `data` covers [0, durationNs]. */
export function drawMinimap(
  frame: Frame,
  data: Minimap | null,
  durationNs: number,
  shown: View,
): void {
  const { ctx, palette, ratio, width, height } = frame;
  ctx.fillStyle = palette.bg.css;
  ctx.fillRect(0, 0, width, height);
  if (data) drawStrip(frame, data, durationNs);
  const left = Math.max(timeToX(frame.view, width, shown.start), 0);
  const right = Math.min(timeToX(frame.view, width, shown.end), width);
  ctx.fillStyle = palette.shade;
  ctx.fillRect(0, 0, left, height);
  ctx.fillRect(right, 0, width - right, height);
  ctx.fillStyle = palette.selection.css;
  ctx.fillRect(left, 0, Math.max(right - left, 2 * ratio), 2 * ratio);
  ctx.fillRect(left, 0, HANDLE_PX * ratio, height);
  ctx.fillRect(Math.max(right - HANDLE_PX * ratio, left), 0, HANDLE_PX * ratio, height);
  ctx.fillStyle = palette.line.css;
  ctx.fillRect(0, height - ratio, width, ratio);
}

function drawStrip(frame: Frame, data: Minimap, durationNs: number): void {
  const { ctx, palette, ratio, height } = frame;
  const bins = data.busy.length;
  // Whole pixels: bars that share one would leave seams.
  const at = (bin: number) =>
    Math.floor(timeToX(frame.view, frame.width, (durationNs * bin) / bins));
  const marks = 7 * ratio;
  const room = height - marks - 4 * ratio;
  const bottom = height - 2 * ratio;
  const severities: (Paint | null)[] = [null, palette.info, palette.warning, palette.critical];
  const mostEvents = data.events.reduce((most, n) => Math.max(most, n), 1);
  for (let bin = 0; bin < bins; bin += 1) {
    const left = at(bin);
    const right = Math.max(at(bin + 1), left + 1);
    const events = (data.events[bin] ?? 0) / mostEvents;
    if (events > 0) {
      ctx.fillStyle = palette.line.css;
      const bar = Math.max(events * room, ratio);
      ctx.fillRect(left, bottom - bar, right - left, bar);
    }
    const busy = (data.busy[bin] ?? 0) * room;
    if (busy > 0) {
      ctx.fillStyle = palette.miniBusy.css;
      ctx.fillRect(left, bottom - Math.max(busy, ratio), right - left, Math.max(busy, ratio));
    }
    const longest = longPollHeight(data.maxdur[bin] ?? 0) * room;
    if (longest > 0) {
      ctx.fillStyle = palette.miniMax.css;
      ctx.fillRect(left, bottom - longest - ratio, right - left, 2 * ratio);
    }
    if ((data.loss[bin] ?? 0) !== 0) drawHatch(frame, left, right, marks, height);
    const severity = severities[data.find[bin] ?? 0];
    if (severity) {
      ctx.fillStyle = severity.css;
      ctx.fillRect(left - ratio, 2 * ratio, Math.max(right - left, 3 * ratio), marks - 2 * ratio);
    }
  }
}

/** 1 ms is at the bottom, 1 s at the top, by the logarithm; shorter ones aren't marked. */
export function longPollHeight(durationNs: number): number {
  return durationNs < 1e6 ? 0 : Math.min(0.1 + 0.9 * (Math.log10(durationNs / 1e6) / 3), 1);
}

export type Grip = 'left' | 'right' | 'inside' | 'outside';

/** What a press at `x` takes hold of. */
export function gripAt(x: number, left: number, right: number, slackPx: number): Grip {
  if (Math.abs(x - left) <= slackPx) return 'left';
  if (Math.abs(x - right) <= slackPx) return 'right';
  return x > left && x < right ? 'inside' : 'outside';
}
