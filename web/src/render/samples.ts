// Samples of running threads: a tick for each, or ticks as high as their number where there are
// more than pixels. In a worker's lane they lie along the lower edge, over the parks. Pure.
// SPDX-License-Identifier: Apache-2.0
import { binNs, type TileId, tileStart } from '../model/tiles';
import { BINS_MODE, EXACT_MODE, type SampleTile } from '../model/tracks';
import type { Placed } from '../store/tile_store';
import { type Box, type Frame, placeOf, tilePlace } from './frame';

export interface SampleSlot {
  slot: TileId;
  placed: Placed<SampleTile> | null;
}

/** How high the ticks in a worker's lane are, in CSS pixels. */
export const TICKS_PX = 7;

/** `at`: which row of each tile; `box`: where the ticks go. */
export function drawSamples(
  frame: Frame,
  box: Box,
  slots: SampleSlot[],
  at: number,
  selected: number | null,
): void {
  const { ctx, palette, ratio } = frame;
  const bottom = box.top + box.height - ratio;
  const full = box.height - 2 * ratio;
  for (const { slot, placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    const { x0, binPx, from, to } = tilePlace(frame, id, slot);
    if (tile.mode[at] === EXACT_MODE) {
      for (let i = tile.rows[at] ?? 0; i < (tile.rows[at + 1] ?? 0); i += 1) {
        const x = Math.round(placeOf(frame, tile.time[i] ?? 0));
        if (x < from || x >= to) continue;
        const isSelected = tile.index[i] === selected;
        ctx.fillStyle = (isSelected ? palette.selection : palette.textSoft).css;
        const width = (isSelected ? 3 : 1) * ratio;
        ctx.fillRect(x - (isSelected ? ratio : 0), bottom - full, width, full);
      }
    } else if (tile.mode[at] === BINS_MODE) {
      ctx.fillStyle = palette.textSoft.css;
      for (let i = tile.brows[at] ?? 0; i < (tile.brows[at + 1] ?? 0); i += 1) {
        const left = Math.floor(x0 + (tile.bin[i] ?? 0) * binPx);
        if (left < from - binPx || left >= to) continue;
        // Low where there are few, so that a band of them doesn't hide the parks.
        const share = Math.min(Math.log2(1 + (tile.n[i] ?? 0)) / 8, 1);
        const bar = Math.max(Math.round(full * share), ratio);
        ctx.fillRect(left, bottom - bar, ratio, bar);
      }
    }
  }
}

export interface SampleHit {
  index: number;
  at: number;
  /** how many the bin holds; 1 for an exact one */
  count: number;
}

/** The sample nearest to a moment within the slack. */
export function hitSample(
  slots: SampleSlot[],
  row: number,
  moment: number,
  slackNs: number,
): SampleHit | null {
  let best: SampleHit | null = null;
  let distance = slackNs;
  for (const { placed } of slots) {
    if (!placed) continue;
    const { tile, id } = placed;
    const isExact = tile.mode[row] === EXACT_MODE;
    const ends = isExact ? tile.rows : tile.brows;
    for (let i = ends[row] ?? 0; i < (ends[row + 1] ?? 0); i += 1) {
      const at = isExact
        ? (tile.time[i] ?? 0)
        : tileStart(id) + (tile.bin[i] ?? 0) * binNs(id.level);
      const length = isExact ? 0 : binNs(id.level);
      const away = moment < at ? at - moment : Math.max(moment - at - length, 0);
      if (away > distance) continue;
      distance = away;
      best = isExact
        ? { index: tile.index[i] ?? 0, at, count: 1 }
        : { index: tile.first[i] ?? 0, at, count: tile.n[i] ?? 0 };
    }
  }
  return best;
}
