// A queue's depth over time: a step line with its range filled, on a scale of its own that starts
// at zero. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatValue } from '../base/format';
import { binNs, type TileId, tileStart } from '../model/tiles';
import type { QueueTile } from '../model/tracks';
import type { Placed } from '../store/tile_store';
import { type Box, background, drawScaleText, type Frame, placeOf, tilePlace } from './frame';

export interface QueueSlot {
  slot: TileId;
  placed: Placed<QueueTile> | null;
}

/** The points of one series in view order: pixel, least, most and last value. */
interface Point {
  x: number;
  min: number;
  max: number;
  last: number;
}

function pointsOf(
  frame: Frame,
  slots: QueueSlot[],
  series: number,
): { points: Point[]; carry: number } {
  const points: Point[] = [];
  let carry = Number.NaN;
  for (const { slot, placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    const { from, to } = tilePlace(frame, id, slot);
    if (points.length === 0 && Number.isNaN(carry)) carry = tile.carry[series] ?? Number.NaN;
    for (let i = 0; i < tile.series.length; i += 1) {
      if (tile.series[i] !== series) continue;
      const x = placeOf(frame, tileStart(id) + (tile.bin[i] ?? 0) * binNs(id.level));
      const last = tile.last[i] ?? 0;
      if (x < from) carry = last;
      if (x < from - 1 || x > to) continue;
      points.push({ x, min: tile.min[i] ?? 0, max: tile.max[i] ?? 0, last });
    }
  }
  return { points, carry };
}

/** Draws the row and returns the top of its scale. `atX`: where the pointer is, or null. */
export function drawQueue(
  frame: Frame,
  box: Box,
  slots: QueueSlot[],
  series: number,
  unit: string | null,
): number {
  const { ctx, palette, ratio } = frame;
  background(frame, box);
  const { points, carry } = pointsOf(frame, slots, series);
  let most = Number.isNaN(carry) ? 0 : carry;
  for (const point of points) most = Math.max(most, point.max);
  const scale = niceTop(most, unit);
  const bottom = box.top + box.height - 2 * ratio;
  const room = box.height - 6 * ratio;
  const yOf = (value: number) => bottom - (value / scale) * room;
  let last = carry;
  let x = 0;
  const step = (to: number, value: number) => {
    if (Number.isNaN(value) || to <= x) return;
    ctx.fillStyle = palette.queueFill.css;
    ctx.fillRect(x, yOf(value), to - x, bottom - yOf(value));
    ctx.fillStyle = palette.queue.css;
    ctx.fillRect(x, yOf(value) - ratio / 2, to - x, ratio);
  };
  for (const point of points) {
    step(point.x, last);
    x = Math.max(point.x, x);
    ctx.fillStyle = palette.queue.css;
    const top = yOf(point.max);
    ctx.fillRect(point.x, top - ratio / 2, ratio, Math.max(yOf(point.min) - top, ratio));
    last = point.last;
  }
  step(frame.width, last);
  drawScaleText(frame, box, formatValue(scale, unit));
  return scale;
}

/** The least of 1, 2, 5 × 10^n that isn't below `most`; of bytes, in the unit that `most` is in. */
export function niceTop(most: number, unit: string | null): number {
  if (most <= 1) return 1;
  if (unit === 'bytes' && most >= 1024) return 1024 * niceTop(most / 1024, unit);
  const power = 10 ** Math.floor(Math.log10(most));
  const top = [1, 2, 5].find((digit) => digit * power >= most) ?? 10;
  return unit === 'bytes' ? Math.min(top * power, 1024) : top * power;
}

/** The value that holds at a moment, with the range of its bin, or null where it isn't known. */
export function valueAt(slots: QueueSlot[], series: number, moment: number) {
  let found: { min: number; max: number; last: number; at: number | null } | null = null;
  for (const { placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    if (tileStart(id) > moment) break;
    const carry = tile.carry[series] ?? Number.NaN;
    if (!found && !Number.isNaN(carry)) found = { min: carry, max: carry, last: carry, at: null };
    for (let i = 0; i < tile.series.length; i += 1) {
      if (tile.series[i] !== series) continue;
      const at = tileStart(id) + (tile.bin[i] ?? 0) * binNs(id.level);
      if (at > moment) continue;
      found = { min: tile.min[i] ?? 0, max: tile.max[i] ?? 0, last: tile.last[i] ?? 0, at };
    }
  }
  return found;
}
