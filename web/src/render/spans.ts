// Packed spans: a box a span with its name, or bins where there are more spans than pixels. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatDuration } from '../base/format';
import type { TileId } from '../model/tiles';
import { BINS_MODE, EXACT_MODE, nameAt, type SpanTile } from '../model/tracks';
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

export interface SpanSlot {
  slot: TileId;
  placed: Placed<SpanTile> | null;
}

/** The same name has the same colour everywhere. */
export function colorOf(name: string, colors: number): number {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash >>> 0) % colors;
}

export function drawSpanRow(
  frame: Frame,
  box: Box,
  slots: SpanSlot[],
  at: number,
  selected: number | null,
) {
  const { ctx, palette, ratio } = frame;
  background(frame, box);
  ctx.font = font(frame, 10);
  ctx.textBaseline = 'middle';
  for (const { slot, placed } of slots) {
    if (!placed) continue;
    const { tile } = placed;
    const { x0, binPx, from, to } = tilePlace(frame, placed.id, slot);
    if (to <= from) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, box.top, to - from, box.height);
    ctx.clip();
    const top = box.top + ratio;
    const height = box.height - 2 * ratio;
    if (tile.mode[at] === EXACT_MODE) {
      for (let i = tile.rows[at] ?? 0; i < (tile.rows[at + 1] ?? 0); i += 1) {
        const left = placeOf(frame, tile.start[i] ?? 0);
        const right = placeOf(frame, (tile.start[i] ?? 0) + (tile.dur[i] ?? 0));
        if (right < from || left > to) continue;
        drawSpan(frame, tile, i, left, right, top, height, tile.index[i] === selected);
      }
    } else if (tile.mode[at] === BINS_MODE) {
      ctx.fillStyle = (palette.spans[0] ?? palette.custom).css;
      for (let i = tile.brows[at] ?? 0; i < (tile.brows[at + 1] ?? 0); i += 1) {
        const bar = Math.max(Math.round((tile.busy[i] ?? 0) * height), 2 * ratio);
        const left = Math.floor(x0 + (tile.bin[i] ?? 0) * binPx);
        ctx.fillRect(left, top + height - bar, Math.max(Math.ceil(binPx), 1), bar);
      }
    }
    ctx.restore();
  }
}

function drawSpan(
  frame: Frame,
  tile: SpanTile,
  i: number,
  left: number,
  right: number,
  top: number,
  height: number,
  isSelected: boolean,
): void {
  const { ctx, palette, ratio } = frame;
  const name = nameAt(tile.names, tile.name[i]) ?? 'unnamed';
  const width = Math.max(right - left - (right - left > 3 ? 1 : 0), 1);
  ctx.fillStyle = (palette.spans[colorOf(name, palette.spans.length)] ?? palette.custom).css;
  ctx.fillRect(left, top, width, height);
  const flag = tile.flag[i] ?? 0;
  if (flag !== 0) {
    ctx.fillStyle = (flag & 2) !== 0 ? palette.critical.css : palette.textSoft.css;
    ctx.fillRect(left + width - 2 * ratio, top, 2 * ratio, height);
  }
  if (isSelected) {
    ctx.strokeStyle = palette.selection.css;
    ctx.lineWidth = 2 * ratio;
    ctx.strokeRect(left, top, width, height);
  }
  if (width < 30 * ratio) return;
  ctx.fillStyle = palette.spanText.css;
  const text = `${name}  ${formatDuration(tile.dur[i] ?? 0)}`;
  fitText(frame, text, Math.max(left, 0), Math.min(right, frame.width), top + height / 2);
}

export interface SpanHit {
  index: number;
  start: number;
  dur: number;
  name: string | null;
  isOpen: boolean;
  isUncompleted: boolean;
}

export function hitSpan(
  tile: SpanTile,
  at: number,
  moment: number,
  slackNs: number,
): SpanHit | null {
  if (tile.mode[at] !== EXACT_MODE) return null;
  const first = tile.rows[at] ?? 0;
  const end = upperBound(tile.start, first, tile.rows[at + 1] ?? 0, moment + slackNs);
  const i = end - 1;
  if (i < first || moment > (tile.start[i] ?? 0) + (tile.dur[i] ?? 0) + slackNs) return null;
  const flag = tile.flag[i] ?? 0;
  return {
    index: tile.index[i] ?? 0,
    start: tile.start[i] ?? 0,
    dur: tile.dur[i] ?? 0,
    name: nameAt(tile.names, tile.name[i]),
    isOpen: (flag & 1) !== 0,
    isUncompleted: (flag & 2) !== 0,
  };
}
