// Draws flame trees: the whole on top, callees below. Colours by module, of waits by reason, of a
// difference by the change; what a search doesn't match fades. Pure: a context, boxes, colours.
// SPDX-License-Identifier: Apache-2.0
import {
  changeOf,
  type FlameBox,
  type FlameMatches,
  flameName,
  type FlameReason,
  flameReasons,
  type FlameSpot,
  type FlameTree,
} from '../model/flame';
import { shortName } from '../model/short_name';
import { mix, type Paint, type Palette } from './palette';

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
  /** of each tree; null: nothing is searched for */
  matches: readonly (FlameMatches | null)[];
  selected: FlameSpot | null;
  hovered: FlameSpot | null;
}

/** A tree with what its colours need. */
export interface PaintedTree {
  tree: FlameTree;
  reasons: FlameReason[];
  /** colours mean reasons in this picture, so modules have none */
  isByReason: boolean;
}

/** The trees of one picture. */
export function paintedTrees(trees: readonly FlameTree[]): PaintedTree[] {
  const reasons = trees.map(flameReasons);
  const isByReason = reasons.some((of) => of.some((reason) => reason !== null));
  return trees.map((tree, part) => ({ tree, reasons: reasons[part] ?? [], isByReason }));
}

export function drawFlame(
  picture: FlamePicture,
  trees: readonly PaintedTree[],
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
    const painted = trees[box.part];
    if (!painted || place.top + place.height < 0 || place.top > picture.height) continue;
    drawBox(picture, painted, box, marks, letter);
  }
}

function placeOf(picture: FlamePicture, box: FlameBox) {
  const { ratio } = picture;
  const left = Math.round(box.left * picture.width);
  return {
    left,
    top: Math.round((box.row * FLAME_ROW_PX - picture.scroll) * ratio),
    width: Math.max(Math.round(box.right * picture.width) - left - ratio, ratio / 2),
    height: (FLAME_ROW_PX - 1) * ratio,
  };
}

/** The colour of a frame that nothing is searched for in. */
function paintOf(palette: Palette, painted: PaintedTree, node: number): Paint {
  const { tree, reasons } = painted;
  const { diff, reply } = tree;
  if (diff) {
    const change = changeOf(diff, diff.nodes[node]?.total ?? [0, 0]);
    const end = change > 0 ? palette.changeMore : palette.changeLess;
    return mix(palette.pollDim, end, Math.min(Math.abs(change), 1));
  }
  const reason = reasons[node];
  if (reason) return palette.reasons[reason];
  const at = reply.nodes[node]?.function ?? null;
  const entry = at === null ? undefined : reply.functions[at];
  if (!entry || painted.isByReason || entry.name.startsWith('[')) return palette.pollDim;
  return palette.spans[hue(entry.module) % palette.spans.length] ?? palette.pollDim;
}

const isAt = (spot: FlameSpot | null, box: FlameBox) =>
  spot !== null && spot.part === box.part && spot.node === box.node;

function drawBox(
  picture: FlamePicture,
  painted: PaintedTree,
  box: FlameBox,
  marks: FlameMarks,
  letter: number,
): void {
  const { ctx, palette, ratio } = picture;
  const { tree } = painted;
  const place = placeOf(picture, box);
  const at = tree.reply.nodes[box.node]?.function ?? null;
  const matches = marks.matches[box.part] ?? null;
  const isMatch = matches !== null && at !== null && matches.functions.has(at);
  const isFaded = matches !== null && !isMatch;
  const fill = paintOf(palette, painted, box.node);
  ctx.globalAlpha = isFaded ? 0.35 : 1;
  ctx.fillStyle = isMatch ? palette.warning.css : fill.css;
  ctx.fillRect(place.left, place.top, place.width, place.height);
  ctx.globalAlpha = 1;
  const letters = Math.floor((place.width - 8 * ratio) / letter);
  if (letters >= 3) {
    const text = shortName(flameName(tree.reply, box.node), letters);
    const ink = tree.diff ? fill.ink : palette.spanText.css;
    ctx.fillStyle = isMatch ? palette.warning.ink : ink;
    if (isFaded) ctx.fillStyle = palette.textSoft.css;
    ctx.fillText(text, place.left + 4 * ratio, place.top + place.height / 2 + ratio / 2);
  }
  const isSelected = isAt(marks.selected, box);
  if (isSelected || isAt(marks.hovered, box)) {
    ctx.strokeStyle = (isSelected ? palette.selection : palette.text).css;
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
  const row = Math.floor((y + scroll) / FLAME_ROW_PX);
  const share = x / widthCss;
  return (
    boxes.find((box) => box.row === row && share >= box.left && share < box.right) ?? null
  );
}

function hue(text: string): number {
  let sum = 7;
  for (let i = 0; i < text.length; i += 1) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
  return sum >>> 3;
}
