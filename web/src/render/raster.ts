// Bins of a lane to pixels. Bins are added up a pixel column at a time by how much they overlap it,
// so that the height of a column is the true share of time whatever the zoom, and the longest poll
// of a column is never lost. Pure: numbers in, pixels out.
// SPDX-License-Identifier: Apache-2.0
import type { LaneTile } from '../model/tracks';
import { type Palette, pollStep } from './palette';

/** One row's pixel columns, reused from row to row. */
export class LaneColumns {
  poll = new Float32Array(0);
  park = new Float32Array(0);
  wait = new Float32Array(0);
  maxdur = new Float32Array(0);

  reset(width: number): void {
    if (this.poll.length < width) {
      this.poll = new Float32Array(width);
      this.park = new Float32Array(width);
      this.wait = new Float32Array(width);
      this.maxdur = new Float32Array(width);
      return;
    }
    for (const column of [this.poll, this.park, this.wait, this.maxdur]) column.fill(0, 0, width);
  }

  /** Adds the bins from..to of a tile whose bin 0 starts at pixel `x0` and is `binPx` wide. */
  add(tile: LaneTile, from: number, to: number, x0: number, binPx: number, width: number): void {
    const { bin, poll, park, wait, maxdur } = tile;
    for (let i = from; i < to; i += 1) {
      const left = x0 + (bin[i] ?? 0) * binPx;
      const right = left + binPx;
      const first = Math.max(Math.floor(left), 0);
      const last = Math.min(Math.ceil(right), width);
      for (let x = first; x < last; x += 1) {
        const overlap = Math.min(right, x + 1) - Math.max(left, x);
        this.poll[x] = (this.poll[x] ?? 0) + (poll[i] ?? 0) * overlap;
        this.park[x] = (this.park[x] ?? 0) + (park[i] ?? 0) * overlap;
        this.wait[x] = (this.wait[x] ?? 0) + (wait[i] ?? 0) * overlap;
        this.maxdur[x] = Math.max(this.maxdur[x] ?? 0, maxdur[i] ?? 0);
      }
    }
  }
}

/** The three bands of a lane, in device pixels from its top. */
export interface Bands {
  height: number;
  waitEnd: number;
  pollStart: number;
  pollEnd: number;
  parkStart: number;
}

export function bandsOf(heightPx: number): Bands {
  const wait = Math.max(Math.round(heightPx * 0.12), 2);
  const park = Math.max(Math.round(heightPx * 0.14), 3);
  const gap = Math.max(Math.round(heightPx * 0.05), 1);
  return {
    height: heightPx,
    waitEnd: gap + wait,
    pollStart: gap + wait + 1,
    pollEnd: heightPx - gap - park - 1,
    parkStart: heightPx - gap - park,
  };
}

/**
 * Paints columns [from, to) into `pixels`, `width` wide, `bands.height` high: polls as bars as high
 * as their share of the time and coloured by the longest, waits above, parks below.
 */
export function paintColumns(
  columns: LaneColumns,
  pixels: Uint32Array,
  width: number,
  from: number,
  to: number,
  bands: Bands,
  palette: Palette,
  background: number,
  isDimmed: boolean,
): void {
  const parkEnd = bands.height - (bands.height - bands.parkStart > 3 ? 1 : 0);
  const full = bands.pollEnd - bands.pollStart;
  for (let x = from; x < to; x += 1) {
    for (let y = 0; y < bands.height; y += 1) pixels[y * width + x] = background;
    const share = columns.poll[x] ?? 0;
    if (share > 0) {
      const paint = palette.polls[pollStep(columns.maxdur[x] ?? 0)] ?? palette.pollDim;
      const color = isDimmed ? palette.pollDim.pixel : paint.pixel;
      const bar = Math.max(Math.round(Math.min(share, 1) * full), 2);
      for (let y = bands.pollEnd - bar; y < bands.pollEnd; y += 1) pixels[y * width + x] = color;
    }
    if ((columns.park[x] ?? 0) > 0.25) {
      for (let y = bands.parkStart; y < parkEnd; y += 1)
        pixels[y * width + x] = palette.park.pixel;
    }
    const wait = columns.wait[x] ?? 0;
    if (wait > 0) {
      // By its root: a little wait is a thin line, a tenth of the time already a third of the band.
      const thick = Math.max(Math.round(Math.sqrt(Math.min(wait, 1)) * (bands.waitEnd - 1)), 1);
      for (let y = bands.waitEnd - thick; y < bands.waitEnd; y += 1)
        pixels[y * width + x] = palette.wait.pixel;
    }
  }
}
