// Custom events: a tick for each, and their values where they have a number. Pure.
// Guide: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
import { formatRange } from '../base/format';
import { binNs, type TileId, tileStart } from '../model/tiles';
import type { EventTile } from '../model/tracks';
import type { Placed } from '../store/tile_store';
import { type Box, background, drawScaleText, type Frame, placeOf, tilePlace } from './frame';

export interface EventSlot {
  slot: TileId;
  placed: Placed<EventTile> | null;
}

interface Scale {
  least: number;
  most: number;
}

/** The range of the values on screen, or null where there are none. */
export function valueScale(frame: Frame, slots: EventSlot[]): Scale | null {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const add = (x: number, low: number, high: number) => {
    if (Number.isNaN(low) || x < 0 || x > frame.width) return;
    least = Math.min(least, low);
    most = Math.max(most, high);
  };
  for (const { placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    const start = tileStart(id);
    for (let i = 0; i < tile.time.length; i += 1) {
      const value = tile.value[i] ?? Number.NaN;
      add(placeOf(frame, tile.time[i] ?? 0), value, value);
    }
    for (let i = 0; i < tile.bin.length; i += 1) {
      const x = placeOf(frame, start + (tile.bin[i] ?? 0) * binNs(id.level));
      add(x, tile.min[i] ?? Number.NaN, tile.max[i] ?? Number.NaN);
    }
  }
  return least <= most ? { least, most } : null;
}

/**
 * One custom type: its values on a scale of their own where it has a number, with a tick below for
 * each event; bins show the range of their values, and by their ticks' height how many they are.
 */
export function drawCustom(
  frame: Frame,
  box: Box,
  slots: EventSlot[],
  unit: string | null,
  selected: number | null,
): void {
  const { ctx, palette, ratio } = frame;
  background(frame, box);
  const scale = valueScale(frame, slots);
  const bottom = box.top + box.height - 2 * ratio;
  const tickRoom = scale ? 6 * ratio : box.height - 6 * ratio;
  const top = box.top + 4 * ratio;
  const room = bottom - tickRoom - 3 * ratio - top;
  const yOf = (value: number) =>
    !scale || scale.most === scale.least
      ? top + room / 2
      : top + room * (1 - (value - scale.least) / (scale.most - scale.least));
  for (const { slot, placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    const { x0, binPx, from, to } = tilePlace(frame, id, slot);
    for (let i = 0; i < tile.time.length; i += 1) {
      const x = Math.round(placeOf(frame, tile.time[i] ?? 0));
      if (x < from || x >= to) continue;
      const isSelected = tile.index[i] === selected;
      ctx.fillStyle = (isSelected ? palette.selection : palette.custom).css;
      const width = (isSelected ? 3 : 1) * ratio;
      ctx.fillRect(x - (isSelected ? ratio : 0), bottom - tickRoom, width, tickRoom);
      const value = tile.value[i] ?? Number.NaN;
      if (!Number.isNaN(value))
        ctx.fillRect(x - ratio, Math.round(yOf(value)) - ratio, 3 * ratio, 3 * ratio);
    }
    ctx.fillStyle = palette.custom.css;
    for (let i = 0; i < tile.bin.length; i += 1) {
      // Whole pixels: a blurred column would look like fewer events.
      const left = Math.floor(x0 + (tile.bin[i] ?? 0) * binPx);
      if (left < from - binPx || left > to) continue;
      const width = Math.max(Math.ceil(binPx), 1);
      const share = Math.min(0.35 + 0.65 * (Math.log10(1 + (tile.n[i] ?? 0)) / 3), 1);
      const bar = Math.round(tickRoom * share);
      ctx.fillRect(left, bottom - bar, width, bar);
      const high = tile.max[i] ?? Number.NaN;
      if (Number.isNaN(high)) continue;
      const y = Math.round(yOf(high));
      ctx.fillRect(left, y, width, Math.max(Math.round(yOf(tile.min[i] ?? high)) - y, ratio));
    }
  }
  if (scale) drawScaleText(frame, box, formatRange(scale.least, scale.most, unit));
}

export interface EventHit {
  index: number;
  at: number;
  value: number | null;
  /** how many events the bin holds; 1 for an exact one */
  count: number;
}

/** The event nearest to a moment within the slack. */
export function hitEvent(slots: EventSlot[], moment: number, slackNs: number): EventHit | null {
  let best: EventHit | null = null;
  let distance = slackNs;
  for (const { placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    for (let i = 0; i < tile.time.length; i += 1) {
      const away = Math.abs((tile.time[i] ?? 0) - moment);
      if (away > distance) continue;
      distance = away;
      const value = tile.value[i] ?? Number.NaN;
      const shown = Number.isNaN(value) ? null : value;
      best = { index: tile.index[i] ?? 0, at: tile.time[i] ?? 0, value: shown, count: 1 };
    }
    for (let i = 0; i < tile.bin.length; i += 1) {
      const at = tileStart(id) + (tile.bin[i] ?? 0) * binNs(id.level);
      const away = moment < at ? at - moment : Math.max(moment - at - binNs(id.level), 0);
      if (away > distance) continue;
      distance = away;
      best = { index: tile.maxidx[i] ?? 0, at, value: null, count: tile.n[i] ?? 0 };
    }
  }
  return best;
}
