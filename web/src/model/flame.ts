// The flame tree as the page draws it: rows of a reply laid out as an icicle, zoomed to one frame,
// and what a search finds. One definition of percent: of all that was taken, zoomed or not. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatBytes, formatCount, formatDuration, formatShare, plural } from '../base/format';
import type { FlameDiffReply, FlameReply } from '../protocol/types';

/** A frame on screen: from `left` to `right`, both shares of the width. */
export interface FlameBox {
  /** which tree of the picture: the callers of a butterfly are the second */
  part: number;
  node: number;
  row: number;
  left: number;
  right: number;
}

/** A frame of a picture. */
export interface FlameSpot {
  part: number;
  node: number;
}

export interface FlameTree {
  /** of a difference: weights are widths, the sum of both sides' shares */
  reply: FlameReply;
  diff: FlameDiffReply | null;
  depth: Int32Array;
  /** weight to the left of each node */
  start: Float64Array;
  children: number[][];
  deepest: number;
}

export function flameTree(reply: FlameReply, diff: FlameDiffReply | null = null): FlameTree {
  const { nodes } = reply;
  const depth = new Int32Array(nodes.length);
  const start = new Float64Array(nodes.length);
  const children: number[][] = nodes.map(() => []);
  let deepest = 0;
  for (let i = 1; i < nodes.length; i += 1) {
    const parent = nodes[i]?.parent ?? 0;
    depth[i] = (depth[parent] ?? 0) + 1;
    start[i] = nodes[i]?.start ?? 0;
    children[parent]?.push(i);
    deepest = Math.max(deepest, depth[i] ?? 0);
  }
  return { reply, diff, depth, start, children, deepest };
}

/** A difference as a tree that is drawn like any other. */
export function diffTree(diff: FlameDiffReply): FlameTree {
  const reply: FlameReply = {
    ...diff,
    order: 'heavy',
    total: diff.width,
    whole: diff.width,
    count: diff.count[0] + diff.count[1],
    truncated: 0,
    unwound: {},
    left_out: 0,
    commands: [],
    functions: diff.functions.map((of) => ({ ...of, self: 0, total: 0 })),
    nodes: diff.nodes.map(({ function: of, parent, start, width }) => ({
      function: of,
      parent,
      start,
      self: 0,
      total: width,
      left_out: 0,
    })),
  };
  return flameTree(reply, diff);
}

/** From the root to the node. */
export function pathTo(tree: FlameTree, node: number): number[] {
  const path = [node];
  for (let at = node; at !== 0; ) {
    at = tree.reply.nodes[at]?.parent ?? 0;
    path.unshift(at);
  }
  return path;
}

/**
 * The frames of at least `least` of the width, zoomed so that `focus` fills it; its ancestors fill
 * it too.
 */
export function flameBoxes(tree: FlameTree, focus: number, least: number, part = 0): FlameBox[] {
  const { nodes } = tree.reply;
  const whole = nodes[focus]?.total ?? 0;
  const boxes: FlameBox[] = [];
  if (whole <= 0) return boxes;
  const row = (node: number) => tree.depth[node] ?? 0;
  for (const node of pathTo(tree, focus).slice(0, -1)) {
    boxes.push({ part, node, row: row(node), left: 0, right: 1 });
  }
  const from = tree.start[focus] ?? 0;
  const open = [focus];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const left = ((tree.start[node] ?? 0) - from) / whole;
    const right = left + (nodes[node]?.total ?? 0) / whole;
    if (right - left < least) continue;
    boxes.push({ part, node, row: row(node), left, right });
    open.push(...(tree.children[node] ?? []));
  }
  return boxes;
}

/** A function's callees below it, its callers above it: the function's own row is both's. */
export function butterflyBoxes(callees: FlameTree, callers: FlameTree, least: number): FlameBox[] {
  const above = flameBoxes(callers, 0, least, 1).filter((box) => box.row > 1);
  const middle = above.reduce((most, box) => Math.max(most, box.row - 1), 0);
  for (const box of above) box.row = middle - (box.row - 1);
  const below = flameBoxes(callees, 0, least).filter((box) => box.row > 0);
  for (const box of below) box.row += middle - 1;
  return [...above, ...below];
}

/** The function's name, by line with it: "work (shop.cc:12)"; of the first node, which is all. */
export function flameName(reply: FlameReply, node: number): string {
  const at = reply.nodes[node]?.function;
  if (at === null || at === undefined) return 'all';
  const of = reply.functions[at];
  return of ? functionName(reply, of) : '';
}

export function functionName(reply: FlameReply, of: FlameReply['functions'][number]): string {
  if (!reply.by_line || !of.line) return of.name;
  const file = (of.file ?? '').replace(/^.*\//, '');
  return `${of.name} (${file}:${of.line})`;
}

const percent = (part: number, whole: number | null): string =>
  whole === null || whole <= 0 ? '-' : formatShare(part / whole);

/** "12.3 %" of all that was taken. */
export function flamePercent(reply: FlameReply, weight: number): string {
  return percent(weight, reply.whole);
}

const UNWOUND = [
  ['tables', 'by unwind tables'],
  ['frame_pointers', 'by frame pointers'],
  ['mixed', 'partly by frame pointers'],
  ['guessed', 'from a frame pointer found by trial'],
  ['one_frame', 'of one frame'],
  ['no_stack', 'without a stack'],
  ['unknown', 'not recorded how'],
] as const;

/** How the stacks were found, and what of them is cut short; empty: nothing is known of it. */
export function unwoundText(reply: FlameReply): string {
  const { unwound, truncated } = reply;
  const parts = UNWOUND.filter(([key]) => (unwound[key] ?? 0) > 0).map(
    ([key, text]) => `${flamePercent(reply, unwound[key] ?? 0)} ${text}`,
  );
  const isKnown = UNWOUND.some(
    ([key]) => key !== 'no_stack' && key !== 'unknown' && (unwound[key] ?? 0) > 0,
  );
  const cut = truncated > 0 ? [`${flamePercent(reply, truncated)} cut short`] : [];
  const all = isKnown ? [...parts, ...cut] : cut;
  return all.length === 0 ? '' : `stacks: ${all.join(', ')}`;
}

type Unit = FlameReply['unit'];

/** A weight with the reply's unit. */
export function flameWeight(reply: { unit: Unit }, weight: number): string {
  if (reply.unit === 'ns') return formatDuration(weight);
  return reply.unit === 'bytes' ? formatBytes(weight) : formatCount(weight);
}

/** What is said of a frame, a line each. */
export function flameFacts(tree: FlameTree, node: number): string[] {
  const { reply, diff } = tree;
  if (diff) {
    const { self, total } = diff.nodes[node] ?? { self: [0, 0], total: [0, 0] };
    return [`total ${sidesText(diff, total)}`, `itself ${sidesText(diff, self)}`];
  }
  const entry = reply.nodes[node];
  if (!entry) return [];
  const sum = (weight: number) => `${flameWeight(reply, weight)}, ${flamePercent(reply, weight)}`;
  const facts = [`total ${sum(entry.total)}`, `itself ${sum(entry.self)}`];
  return entry.left_out > 0 ? [...facts, `left out below ${sum(entry.left_out)}`] : facts;
}

const share = (part: number, whole: number | null) =>
  whole === null || whole <= 0 ? 0 : part / whole;

/** How much of both sides' shares is gain (1: new) or loss (-1: gone). */
export function changeOf(diff: FlameDiffReply, total: readonly [number, number]): number {
  const [before, after] = [share(total[0], diff.whole[0]), share(total[1], diff.whole[1])];
  return before + after <= 0 ? 0 : (after - before) / (before + after);
}

/** "1.2 s, 10 % → 3 s, 25 % (+15 points)" */
export function sidesText(diff: FlameDiffReply, sides: readonly [number, number]): string {
  const text = (side: 0 | 1) => {
    const ofSide = percent(sides[side], diff.whole[side]);
    return `${flameWeight(diff, sides[side])}, ${ofSide}`;
  };
  return `${text(0)} → ${text(1)} (${pointsText(diff, sides)})`;
}

/** "+15 points" */
export function pointsText(diff: FlameDiffReply, sides: readonly [number, number]): string {
  const points = (share(sides[1], diff.whole[1]) - share(sides[0], diff.whole[0])) * 100;
  const text = Number(points.toPrecision(3));
  return `${text > 0 ? '+' : ''}${text} points`;
}

export interface FlameMatches {
  functions: Set<number>;
  /** of the stacks that have one of them, each stack once */
  weight: number;
}

/** The functions whose names hold the text, without regard to case; null for no text. */
export function flameMatches(tree: FlameTree, text: string): FlameMatches | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return null;
  const functions = new Set<number>();
  tree.reply.functions.forEach((entry, index) => {
    if (entry.name.toLowerCase().includes(wanted)) functions.add(index);
  });
  let weight = 0;
  const open = [0];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const entry = tree.reply.nodes[node];
    if (entry && entry.function !== null && functions.has(entry.function)) weight += entry.total;
    else open.push(...(tree.children[node] ?? []));
  }
  return { functions, weight };
}

/** What the search found, as a text: the share of the whole, of a difference of each side. */
export function foundText(tree: FlameTree, found: FlameMatches): string {
  const functions = plural(found.functions.size, 'function');
  const { diff } = tree;
  // What has no node here may match too.
  const isLeast = tree.reply.nodes_left_out > 0 && found.weight < (tree.reply.total ?? 0);
  const least = isLeast ? 'at least ' : '';
  if (!diff) return `${least}${flamePercent(tree.reply, found.weight)} in ${functions}`;
  const sums: [number, number] = [0, 0];
  const open = [0];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const entry = diff.nodes[node];
    if (entry && entry.function !== null && found.functions.has(entry.function)) {
      sums[0] += entry.total[0];
      sums[1] += entry.total[1];
    } else open.push(...(tree.children[node] ?? []));
  }
  return `${least}${sidesText(diff, sums)} in ${functions}`;
}

/** Why a frame's stacks were off the CPU, or that they were on it; null: not told. */
export type FlameReason =
  | 'on-cpu'
  | 'lock'
  | 'socket'
  | 'disk'
  | 'timer'
  | 'events'
  | 'other'
  | null;

const REASONS: readonly [RegExp, FlameReason][] = [
  [/^\[on CPU\]$/, 'on-cpu'],
  [/^\[blocked: lock\]$/, 'lock'],
  [/^\[blocked: socket\]$/, 'socket'],
  [/^\[blocked: (disk|page fault)\]$/, 'disk'],
  [/^\[blocked: timer\]$/, 'timer'],
  [/^\[(blocked: (condition|events|pipe)|parked: .*)\]$/, 'events'],
  [/^\[(blocked: .*|off CPU)\]$/, 'other'],
];

export function reasonOf(name: string): FlameReason {
  return REASONS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}

/** The reason of each node: its own, or that of the frame next to the root that it is below. */
export function flameReasons(tree: FlameTree): FlameReason[] {
  const out: FlameReason[] = [];
  tree.reply.nodes.forEach((node, index) => {
    const above = node.parent === null ? null : (out[node.parent] ?? null);
    out.push(index === 0 ? null : (reasonOf(flameName(tree.reply, index)) ?? above));
  });
  return out;
}
