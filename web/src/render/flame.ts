// Draws a flame tree as an icicle: the whole on top, callees below. Colours by module; what a
// search doesn't match fades. Pure: a context, boxes, colours.
// SPDX-License-Identifier: Apache-2.0
import { type FlameBox, type FlameMatches, flameName, type FlameTree } from '../model/flame';
import { shortName } from '../model/short_name';
import type { Palette } from './palette';

export const FLAME_ROW_PX = 19;
const MONO = "ui-monospace, 'DejaVu Sans Mono', monospace";

export interface FlamePicture {
  ctx: CanvasRenderingContext2D;
  /** device pixels, and how many there are to a CSS pixel */
  width: number;
  height: number;
  ratio: number;
  /** CSS pixels that are scrolled away at the top */
  scroll: number;
  palette: Palette;
}

export interface FlameMarks {
  matches: FlameMatches | null;
  selected: number | null;
  hovered: number | null;
}

export function drawFlame(
  picture: FlamePicture,
  tree: FlameTree,
  boxes: readonly FlameBox[],
  marks: FlameMarks,
): void {
  const { ctx, palette, ratio } = picture;
  ctx.fillStyle = palette.bg.css;
  ctx.fillRect(0, 0, picture.width, picture.height);
  ctx.font = `${11 * ratio}px ${MONO}`;
  ctx.textBaseline = 'middle';
  const letter = ctx.measureText('x').width;
  for (const box of boxes) {
    const place = placeOf(picture, box);
    if (place.top + place.height < 0 || place.top > picture.height) continue;
    drawBox(picture, tree, box, marks, letter);
  }
}

function placeOf(picture: FlamePicture, box: FlameBox) {
  const { ratio } = picture;
  const left = Math.round(box.left * picture.width);
  return {
    left,
    top: Math.round((box.depth * FLAME_ROW_PX - picture.scroll) * ratio),
    width: Math.max(Math.round(box.right * picture.width) - left - ratio, ratio / 2),
    height: (FLAME_ROW_PX - 1) * ratio,
  };
}

function drawBox(
  picture: FlamePicture,
  tree: FlameTree,
  box: FlameBox,
  marks: FlameMarks,
  letter: number,
): void {
  const { ctx, palette, ratio } = picture;
  const place = placeOf(picture, box);
  const at = tree.reply.nodes[box.node]?.function ?? null;
  const entry = at === null ? undefined : tree.reply.functions[at];
  const isMatch = marks.matches !== null && at !== null && marks.matches.functions.has(at);
  const isFaded = marks.matches !== null && !isMatch;
  const isBare = !entry || entry.name.startsWith('[');
  const paint = isBare ? palette.pollDim : palette.spans[hue(entry.module) % palette.spans.length];
  ctx.globalAlpha = isFaded ? 0.35 : 1;
  ctx.fillStyle = isMatch ? palette.warning.css : (paint ?? palette.pollDim).css;
  ctx.fillRect(place.left, place.top, place.width, place.height);
  ctx.globalAlpha = 1;
  const letters = Math.floor((place.width - 8 * ratio) / letter);
  if (letters >= 3) {
    const name = flameName(tree.reply, box.node);
    const text = shortName(name, letters);
    ctx.fillStyle = isMatch ? palette.warning.ink : palette.spanText.css;
    if (isFaded) ctx.fillStyle = palette.textSoft.css;
    ctx.fillText(text, place.left + 4 * ratio, place.top + place.height / 2 + ratio / 2);
  }
  if (box.node === marks.selected || box.node === marks.hovered) {
    ctx.strokeStyle = (box.node === marks.selected ? palette.selection : palette.text).css;
    ctx.lineWidth = 2 * ratio;
    ctx.strokeRect(
      place.left + ratio,
      place.top + ratio,
      Math.max(place.width - 2 * ratio, ratio),
      place.height - 2 * ratio,
    );
  }
}

/** The frame at a point, in CSS pixels of the canvas. */
export function hitFlame(
  boxes: readonly FlameBox[],
  widthCss: number,
  scroll: number,
  x: number,
  y: number,
): FlameBox | null {
  const depth = Math.floor((y + scroll) / FLAME_ROW_PX);
  const share = x / widthCss;
  return (
    boxes.find((box) => box.depth === depth && share >= box.left && share < box.right) ?? null
  );
}

function hue(text: string): number {
  let sum = 7;
  for (let i = 0; i < text.length; i += 1) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
  return sum >>> 3;
}
