// Which tiles a view needs. A tile is BINS bins of 2^level ns, at a whole multiple of its own
// width: neighbours and other zoom steps share them, so panning asks for little and zooming finds
// something to stretch meanwhile. Pure.
// SPDX-License-Identifier: Apache-2.0
import type { Window } from '../protocol/client';
import { span, type View } from './view';

export const BINS = 1024;
const LEAST_LEVEL = -4;
const MOST_LEVEL = 50;

export interface TileId {
  level: number;
  index: number;
}

export const binNs = (level: number) => 2 ** level;
export const tileNs = (level: number) => BINS * binNs(level);
export const tileStart = (id: TileId) => id.index * tileNs(id.level);

/** The coarsest level whose bins are no wider than a device pixel. */
export function levelFor(view: View, devicePixels: number): number {
  const level = Math.floor(Math.log2(span(view) / Math.max(devicePixels, 1)));
  return Math.min(Math.max(level, LEAST_LEVEL), MOST_LEVEL);
}

/** The tiles of `level` that touch both the view and the trace, from left to right. */
export function tilesIn(view: View, level: number, durationNs: number): TileId[] {
  const width = tileNs(level);
  const first = Math.floor(Math.max(view.start, 0) / width);
  const last = Math.floor(Math.min(view.end, durationNs) / width);
  const out: TileId[] = [];
  for (let index = first; index <= last; index += 1) out.push({ level, index });
  return out;
}

/** What is likely wanted next: a tile on both sides, and the next coarser level. */
export function neighbours(view: View, level: number, durationNs: number): TileId[] {
  const width = tileNs(level);
  const wider = { start: view.start - width, end: view.end + width };
  const seen = new Set(tilesIn(view, level, durationNs).map((id) => id.index));
  const sides = tilesIn(wider, level, durationNs).filter((id) => !seen.has(id.index));
  return [...sides, ...tilesIn(view, level + 2, durationNs)];
}

/** The tile of a coarser level that covers all of `id`. */
export function parent(id: TileId, level: number): TileId {
  return { level, index: Math.floor(id.index / 2 ** (level - id.level)) };
}

export function tileWindow(id: TileId): Window {
  return { t0: tileStart(id), bin: binNs(id.level), bins: BINS };
}
