// The flame tree as the page draws it: rows of a reply laid out as an icicle, zoomed to one frame,
// and what a search finds. One definition of percent: of the whole tree. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatBytes, formatCount, formatDuration, formatShare } from '../base/format';
import type { FlameReply } from '../protocol/types';

/** How the panel shows the tree, and of what. */
export interface FlameChoice {
  /** the stretch of time: what is on screen, the measured range, a kept stretch, or all */
  scope: 'screen' | 'range' | 'stretch' | 'all';
  /** the kept stretch: that of what was selected, so that going to moments doesn't change it */
  stretch: readonly [number, number] | null;
  worker: number | null;
  /** only of a task, by its id; only in a span, by its index, and those inside it */
  task: string | null;
  span: number | null;
  /** "name=value", or a name alone */
  label: string;
  inverted: boolean;
  shows: 'icicle' | 'table';
  search: string;
}

export const FLAME_CHOICE: FlameChoice = {
  scope: 'screen',
  stretch: null,
  worker: null,
  task: null,
  span: null,
  label: '',
  inverted: false,
  shows: 'icicle',
  search: '',
};

/** A frame on screen: from `left` to `right`, both shares of the width. */
export interface FlameBox {
  node: number;
  depth: number;
  left: number;
  right: number;
}

export interface FlameTree {
  reply: FlameReply;
  depth: Int32Array;
  /** weight to the left of each node */
  start: Float64Array;
  children: number[][];
  deepest: number;
}

export function flameTree(reply: FlameReply): FlameTree {
  const { nodes } = reply;
  const depth = new Int32Array(nodes.length);
  const start = new Float64Array(nodes.length);
  const filled = new Float64Array(nodes.length);
  const children: number[][] = nodes.map(() => []);
  let deepest = 0;
  for (let i = 1; i < nodes.length; i += 1) {
    const parent = nodes[i]?.parent ?? 0;
    depth[i] = (depth[parent] ?? 0) + 1;
    start[i] = (start[parent] ?? 0) + (filled[parent] ?? 0);
    filled[parent] = (filled[parent] ?? 0) + (nodes[i]?.total ?? 0);
    children[parent]?.push(i);
    deepest = Math.max(deepest, depth[i] ?? 0);
  }
  return { reply, depth, start, children, deepest };
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
export function flameBoxes(tree: FlameTree, focus: number, least: number): FlameBox[] {
  const { nodes } = tree.reply;
  const whole = nodes[focus]?.total ?? 0;
  const boxes: FlameBox[] = [];
  if (whole <= 0) return boxes;
  for (const node of pathTo(tree, focus).slice(0, -1)) {
    boxes.push({ node, depth: tree.depth[node] ?? 0, left: 0, right: 1 });
  }
  const from = tree.start[focus] ?? 0;
  const open = [focus];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const left = ((tree.start[node] ?? 0) - from) / whole;
    const right = left + (nodes[node]?.total ?? 0) / whole;
    if (right - left < least) continue;
    boxes.push({ node, depth: tree.depth[node] ?? 0, left, right });
    open.push(...(tree.children[node] ?? []));
  }
  return boxes;
}

/** The function's name; of the first node, which is all, its title. */
export function flameName(reply: FlameReply, node: number): string {
  const at = reply.nodes[node]?.function;
  if (at === null || at === undefined) return 'all';
  return reply.functions[at]?.name ?? '';
}

/** "12.3 %" of the whole tree. */
export function flamePercent(reply: FlameReply, weight: number): string {
  return reply.total <= 0 ? '-' : formatShare(weight / reply.total);
}

/** A weight with the reply's unit. */
export function flameWeight(reply: FlameReply, weight: number): string {
  if (reply.unit === 'ns') return formatDuration(weight);
  return reply.unit === 'bytes' ? formatBytes(weight) : formatCount(weight);
}

/** A choice from the address; what can't be understood is as usual. */
export function parseFlame(text: string): FlameChoice {
  const out = { ...FLAME_CHOICE };
  for (const [name, value] of new URLSearchParams(text)) {
    if (name === 'scope' && (value === 'range' || value === 'all')) out.scope = value;
    else if (name === 'stretch') keepStretch(out, value);
    else if (name === 'worker' && /^\d+$/.test(value)) out.worker = Number(value);
    else if (name === 'task' && /^\d+$/.test(value)) out.task = value;
    else if (name === 'span' && /^\d+$/.test(value)) out.span = Number(value);
    else if (name === 'label') out.label = value;
    else if (name === 'inverted') out.inverted = value === '1';
    else if (name === 'table') out.shows = value === '1' ? 'table' : 'icicle';
    else if (name === 'q') out.search = value;
  }
  return out;
}

function keepStretch(out: FlameChoice, value: string): void {
  const [from, to, more] = value.split(',').map(Number);
  if (from === undefined || to === undefined || more !== undefined || !(from <= to)) return;
  if (!Number.isFinite(from) || !Number.isFinite(to)) return;
  [out.scope, out.stretch] = ['stretch', [from, to]];
}

/** Without what is as usual. */
export function formatFlame(choice: FlameChoice): string {
  const out = new URLSearchParams();
  if (choice.scope === 'range' || choice.scope === 'all') out.set('scope', choice.scope);
  if (choice.scope === 'stretch' && choice.stretch) out.set('stretch', choice.stretch.join(','));
  if (choice.worker !== null) out.set('worker', String(choice.worker));
  if (choice.task !== null) out.set('task', choice.task);
  if (choice.span !== null) out.set('span', String(choice.span));
  if (choice.label !== '') out.set('label', choice.label);
  if (choice.inverted) out.set('inverted', '1');
  if (choice.shows === 'table') out.set('table', '1');
  if (choice.search !== '') out.set('q', choice.search);
  return out.toString();
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
