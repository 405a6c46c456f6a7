// A worker's lane: polls, parks and kernel waits, from exact slices or from bins, with the selected
// task's polls in front and everything else dimmed. Pure: draws what it is given.
// SPDX-License-Identifier: Apache-2.0
import { formatDuration, shortPlace } from '../base/format';
import type { TileId } from '../model/tiles';
import { BINS_MODE, EXACT_MODE, type LaneTile, nameAt, PARK, POLL } from '../model/tracks';
import type { Placed } from '../store/tile_store';
import {
  type Box,
  background,
  fitText,
  font,
  type Frame,
  placeOf,
  tilePlace,
  upperBound,
} from './frame';
import { pollStep } from './palette';
import { bandsOf, LaneColumns, paintColumns } from './raster';

export interface LaneSlot {
  slot: TileId;
  /** null: nothing has arrived yet, not even a coarser tile */
  placed: Placed<LaneTile> | null;
}

const columns = new LaneColumns();
let image: ImageData | null = null;

function pixelsFor(width: number, height: number): ImageData {
  if (!image || image.width !== width || image.height !== height)
    image = new ImageData(width, height);
  return image;
}

/** `at`: which lane of each tile. `isDimmed`: a task is selected and this isn't its layer. */
export function drawLane(
  frame: Frame,
  box: Box,
  slots: LaneSlot[],
  at: number,
  isDimmed: boolean,
) {
  background(frame, box);
  drawBins(frame, box, slots, at, isDimmed);
  for (const { slot, placed } of slots) {
    if (!placed) drawPending(frame, box, slot);
    else if (placed.tile.mode[at] === EXACT_MODE) {
      drawSlices(frame, box, placed, slot, at, isDimmed);
    }
  }
}

function drawBins(frame: Frame, box: Box, slots: LaneSlot[], at: number, isDimmed: boolean): void {
  const binned = slots.filter(({ placed }) => placed?.tile.mode[at] === BINS_MODE);
  if (binned.length === 0) return;
  const bands = bandsOf(box.height);
  const target = pixelsFor(frame.width, box.height);
  const pixels = new Uint32Array(target.data.buffer);
  const under = (box.isAlternate ? frame.palette.laneAlt : frame.palette.lane).pixel;
  for (const { slot, placed } of binned) {
    if (!placed) continue;
    const { x0, binPx, from, to } = tilePlace(frame, placed.id, slot);
    if (to <= from) continue;
    columns.reset(frame.width);
    const { brows } = placed.tile;
    columns.add(placed.tile, brows[at] ?? 0, brows[at + 1] ?? 0, x0, binPx, frame.width);
    paintColumns(columns, pixels, frame.width, from, to, bands, frame.palette, under, isDimmed);
    frame.ctx.putImageData(target, 0, box.top, from, 0, to - from, box.height);
  }
}

function drawPending(frame: Frame, box: Box, slot: TileId): void {
  const { from, to } = tilePlace(frame, slot, slot);
  frame.ctx.fillStyle = frame.palette.lineSoft.css;
  frame.ctx.fillRect(from, box.top + Math.floor(box.height / 2), to - from, 1);
}

function drawSlices(
  frame: Frame,
  box: Box,
  placed: Placed<LaneTile>,
  slot: TileId,
  at: number,
  isDimmed: boolean,
): void {
  const { ctx, palette } = frame;
  const { tile } = placed;
  const { from, to } = tilePlace(frame, placed.id, slot);
  if (to <= from) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, box.top, to - from, box.height);
  ctx.clip();
  const bands = bandsOf(box.height);
  ctx.font = font(frame, 10);
  ctx.textBaseline = 'middle';
  const last = tile.rows[at + 1] ?? 0;
  for (let i = tile.rows[at] ?? 0; i < last; i += 1) {
    const start = tile.start[i] ?? 0;
    const left = placeOf(frame, start);
    const right = placeOf(frame, start + (tile.dur[i] ?? 0));
    if (right < from || left > to) continue;
    const kind = tile.kind[i] ?? POLL;
    if (kind === POLL) {
      drawPoll(frame, box, tile, i, left, right, isDimmed);
    } else if (kind === PARK) {
      ctx.fillStyle = palette.park.css;
      ctx.fillRect(
        left,
        box.top + bands.parkStart,
        Math.max(right - left, 1),
        bands.height - bands.parkStart - 1,
      );
    } else {
      ctx.fillStyle = palette.wait.css;
      ctx.fillRect(left, box.top + 1, Math.max(right - left, 1), bands.waitEnd - 1);
    }
  }
  ctx.restore();
}

function drawPoll(
  frame: Frame,
  box: Box,
  tile: LaneTile,
  i: number,
  left: number,
  right: number,
  isDimmed: boolean,
): void {
  const { ctx, palette } = frame;
  const bands = bandsOf(box.height);
  const duration = tile.dur[i] ?? 0;
  const step = pollStep(duration);
  const top = box.top + bands.pollStart;
  const height = bands.pollEnd - bands.pollStart;
  const width = Math.max(right - left - (right - left > 3 ? 1 : 0), 1);
  ctx.fillStyle = (isDimmed ? palette.pollDim : (palette.polls[step] ?? palette.pollDim)).css;
  ctx.fillRect(left, top, width, height);
  if (((tile.flag[i] ?? 0) & 1) !== 0) drawOpenEnd(frame, left + width, top, height);
  if (isDimmed || width < 30 * frame.ratio) return;
  const place = nameAt(tile.locs, tile.loc[i]);
  const length = formatDuration(duration);
  ctx.fillStyle = (palette.polls[step] ?? palette.pollDim).ink;
  const text = place ? `${shortPlace(place)}  ${length}` : length;
  fitText(frame, text, Math.max(left, 0), Math.min(right, frame.width), top + height / 2);
}

/** A ragged edge: this poll had not ended when the trace did. */
function drawOpenEnd(frame: Frame, right: number, top: number, height: number): void {
  const { ctx, ratio, palette } = frame;
  ctx.fillStyle = palette.text.css;
  for (let y = 0; y < height; y += 4 * ratio)
    ctx.fillRect(right - ratio, top + y, ratio, 2 * ratio);
}

/** The selected task's polls over the dimmed lane; at least two pixels each, so none is lost. */
export function drawTaskLayer(frame: Frame, box: Box, slots: LaneSlot[], at: number): void {
  const { ctx, palette } = frame;
  const bands = bandsOf(box.height);
  const least = 2 * frame.ratio;
  ctx.font = font(frame, 10);
  ctx.textBaseline = 'middle';
  for (const { slot, placed } of slots) {
    if (!placed) continue;
    const { tile } = placed;
    const { x0, binPx, from, to } = tilePlace(frame, placed.id, slot);
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, box.top, Math.max(to - from, 0), box.height);
    ctx.clip();
    if (tile.mode[at] === EXACT_MODE) {
      for (let i = tile.rows[at] ?? 0; i < (tile.rows[at + 1] ?? 0); i += 1) {
        const left = placeOf(frame, tile.start[i] ?? 0);
        const right = placeOf(frame, (tile.start[i] ?? 0) + (tile.dur[i] ?? 0));
        drawPoll(frame, box, tile, i, left, Math.max(right, left + least), false);
        drawDelay(
          frame,
          box.top + bands.pollStart,
          bands.pollEnd - bands.pollStart,
          tile.ready[i],
          left,
        );
      }
    } else if (tile.mode[at] === BINS_MODE) {
      for (let i = tile.brows[at] ?? 0; i < (tile.brows[at + 1] ?? 0); i += 1) {
        if ((tile.poll[i] ?? 0) <= 0 && (tile.n[i] ?? 0) === 0) continue;
        ctx.fillStyle = (palette.polls[pollStep(tile.maxdur[i] ?? 0)] ?? palette.selection).css;
        const left = x0 + (tile.bin[i] ?? 0) * binPx;
        ctx.fillRect(
          left,
          box.top + bands.pollStart,
          Math.max(binPx, least),
          bands.pollEnd - bands.pollStart,
        );
      }
    }
    ctx.restore();
  }
}

/** From the moment a task was ready (a triangle) to its poll: the line is its scheduling delay. */
function drawDelay(
  frame: Frame,
  top: number,
  height: number,
  ready: number | undefined,
  right: number,
) {
  if (ready === undefined || Number.isNaN(ready)) return;
  const { ctx, ratio, palette } = frame;
  const x = placeOf(frame, ready);
  if (right - x < 1) return;
  const middle = top + height / 2;
  ctx.fillStyle = palette.selection.css;
  ctx.fillRect(x, middle - ratio / 2, right - x, ratio);
  ctx.beginPath();
  ctx.moveTo(x - 3 * ratio, middle - 4 * ratio);
  ctx.lineTo(x + 3 * ratio, middle);
  ctx.lineTo(x - 3 * ratio, middle + 4 * ratio);
  ctx.fill();
}

export interface LaneHit {
  kind: number;
  index: number | null;
  start: number;
  dur: number;
  task: string | null;
  place: string | null;
  isOpen: boolean;
}

export interface BinHit {
  polls: number;
  share: number;
  maxdur: number;
  maxidx: number;
  start: number;
  dur: number;
}

/** The slice of a lane under a moment, with `slackNs` to both sides for slices under a pixel. */
export function hitSlice(
  tile: LaneTile,
  at: number,
  moment: number,
  slackNs: number,
): LaneHit | null {
  if (tile.mode[at] !== EXACT_MODE) return null;
  const first = tile.rows[at] ?? 0;
  let best = -1;
  let distance = slackNs;
  const end = upperBound(tile.start, first, tile.rows[at + 1] ?? 0, moment + slackNs);
  for (let i = end - 1; i >= first && i > end - 256; i -= 1) {
    const start = tile.start[i] ?? 0;
    const stop = start + (tile.dur[i] ?? 0);
    const away = moment < start ? start - moment : Math.max(moment - stop, 0);
    if (away < distance || (away === 0 && best === -1)) {
      best = i;
      distance = away;
    }
  }
  if (best === -1) return null;
  const index = tile.index[best] ?? 0xffffffff;
  return {
    kind: tile.kind[best] ?? POLL,
    index: index === 0xffffffff ? null : index,
    start: tile.start[best] ?? 0,
    dur: tile.dur[best] ?? 0,
    task: nameAt(tile.tasks, tile.task[best]),
    place: nameAt(tile.locs, tile.loc[best]),
    isOpen: ((tile.flag[best] ?? 0) & 1) !== 0,
  };
}
