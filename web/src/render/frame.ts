// What every renderer gets: where to draw, which stretch of time, in which colours. One function
// turns a moment into a pixel, so that no two panels disagree.
// SPDX-License-Identifier: Apache-2.0
import { tileStart, type TileId, binNs, tileNs } from '../model/tiles';
import { timeToX, type View } from '../model/view';
import type { Palette } from './palette';

export interface Frame {
  ctx: CanvasRenderingContext2D;
  view: View;
  /** device pixels */
  width: number;
  height: number;
  /** device pixels per CSS pixel */
  ratio: number;
  palette: Palette;
}

/** A row's place on the canvas, in device pixels. */
export interface Box {
  top: number;
  height: number;
  isAlternate: boolean;
}

export const placeOf = (frame: Frame, at: number) => timeToX(frame.view, frame.width, at);

/** Where a tile lies: its first pixel, the width of a bin, and the pixels that belong to `slot`. */
export function tilePlace(frame: Frame, id: TileId, slot: TileId) {
  const x0 = placeOf(frame, tileStart(id));
  const perNs = frame.width / (frame.view.end - frame.view.start);
  const from = Math.max(Math.round(placeOf(frame, tileStart(slot))), 0);
  const to = Math.min(
    Math.round(placeOf(frame, tileStart(slot) + tileNs(slot.level))),
    frame.width,
  );
  return { x0, binPx: binNs(id.level) * perNs, from, to };
}

export function background(frame: Frame, box: Box): void {
  frame.ctx.fillStyle = (box.isAlternate ? frame.palette.laneAlt : frame.palette.lane).css;
  frame.ctx.fillRect(0, box.top, frame.width, box.height);
}

/** The first place of a sorted column whose value is over `limit`. */
export function upperBound(values: Float64Array, from: number, to: number, limit: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

const measured = new Map<string, number>();
/** The width of a text in a font, remembered. */
function textWidth(ctx: CanvasRenderingContext2D, text: string): number {
  const key = `${ctx.font}\n${text}`;
  let width = measured.get(key);
  if (width === undefined) {
    if (measured.size > 5000) measured.clear();
    width = ctx.measureText(text).width;
    measured.set(key, width);
  }
  return width;
}

/** Writes a text into [left, right), cut with an ellipsis; nothing where three don't fit. */
export function fitText(frame: Frame, text: string, left: number, right: number, y: number): void {
  const { ctx, ratio } = frame;
  const room = right - left - 6 * ratio;
  if (room < 18 * ratio) return;
  let shown = text;
  if (textWidth(ctx, text) > room) {
    const letters = Math.floor((text.length * room) / textWidth(ctx, text)) - 1;
    if (letters < 3) return;
    shown = `${text.slice(0, letters)}…`;
  }
  ctx.fillText(shown, left + 3 * ratio, y);
}

/** Where the scale of a row is written: at the left, but never under the shade before the trace. */
export const scaleX = (frame: Frame) => Math.max(placeOf(frame, 0), 0) + 3 * frame.ratio;

/** Writes a row's scale into its upper corner, on a plate that keeps the drawing apart. */
export function drawScaleText(frame: Frame, box: Box, text: string): void {
  const { ctx, palette, ratio } = frame;
  ctx.font = font(frame, 9);
  const x = scaleX(frame);
  ctx.fillStyle = (box.isAlternate ? palette.laneAlt : palette.lane).css;
  ctx.fillRect(x - ratio, box.top, textWidth(ctx, text) + 3 * ratio, 12 * ratio);
  ctx.fillStyle = palette.textSoft.css;
  ctx.textBaseline = 'top';
  ctx.fillText(text, x, box.top + 2 * ratio);
}

export const font = (frame: Frame, sizePx: number, weight = 400) =>
  `${weight} ${sizePx * frame.ratio}px system-ui, 'DejaVu Sans', sans-serif`;
