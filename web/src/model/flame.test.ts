// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { FlameReply } from '../protocol/types';
import {
  FLAME_CHOICE,
  flameBoxes,
  flameMatches,
  flamePercent,
  flameTree,
  formatFlame,
  parseFlame,
  pathTo,
} from './flame';

/** main (100): work (60): hash (40); main: idle (30). */
const REPLY: FlameReply = {
  title: 'CPU time',
  counts: 'sample',
  unit: 'ns',
  inverted: false,
  total: 100,
  count: 10,
  truncated: 0,
  left_out: 0,
  nodes_left_out: 0,
  functions_left_out: 0,
  notes: [],
  functions: [
    { name: 'main', module: 'app', self: 10, total: 100 },
    { name: 'work', module: 'app', self: 20, total: 60 },
    { name: 'Hash', module: 'lib', self: 40, total: 40 },
    { name: 'idle', module: 'app', self: 30, total: 30 },
  ],
  nodes: [
    { function: null, parent: null, self: 0, total: 100, left_out: 0 },
    { function: 0, parent: 0, self: 10, total: 100, left_out: 0 },
    { function: 1, parent: 1, self: 20, total: 60, left_out: 0 },
    { function: 2, parent: 2, self: 40, total: 40, left_out: 0 },
    { function: 3, parent: 1, self: 30, total: 30, left_out: 0 },
  ],
};
const tree = flameTree(REPLY);

describe('the flame tree', () => {
  it('lays children out below their parent, side by side', () => {
    const boxes = flameBoxes(tree, 0, 0);
    expect(boxes).toHaveLength(5);
    const idle = boxes.find((box) => box.node === 4);
    expect(idle?.depth).toBe(2);
    expect(idle?.left).toBeCloseTo(0.6);
    expect(idle?.right).toBeCloseTo(0.9);
    expect(tree.deepest).toBe(3);
  });
  it('fills the width with the frame in focus and those above it', () => {
    const boxes = flameBoxes(tree, 2, 0);
    expect(boxes.map((box) => box.node).sort()).toEqual([0, 1, 2, 3]);
    const hash = boxes.find((box) => box.node === 3);
    expect(hash?.left).toBe(0);
    expect(hash?.right).toBeCloseTo(40 / 60);
  });
  it('leaves out what is too thin to see', () => {
    expect(flameBoxes(tree, 0, 0.5).map((box) => box.node)).toEqual([0, 1, 2]);
  });
  it('knows the way from the root', () => {
    expect(pathTo(tree, 3)).toEqual([0, 1, 2, 3]);
    expect(pathTo(tree, 0)).toEqual([0]);
  });
});

describe('search', () => {
  it('counts a stack once, however many of its frames match', () => {
    expect(flameMatches(tree, 'a')?.weight).toBe(100); // main, hash
    expect(flameMatches(tree, 'HASH')?.weight).toBe(40);
    expect(flameMatches(tree, 'hash')?.functions).toEqual(new Set([2]));
    expect(flameMatches(tree, 'nothing')?.weight).toBe(0);
    expect(flameMatches(tree, ' ')).toBeNull();
  });
});

describe('the choice in the address', () => {
  it('comes back, and is short where it is as usual', () => {
    expect(formatFlame(FLAME_CHOICE)).toBe('');
    const choice = { ...FLAME_CHOICE, worker: 3, task: '7', label: 'a=b&c', search: 'x y' };
    expect(parseFlame(formatFlame(choice))).toEqual(choice);
    const wrong = 'scope=evil&scope=stretch&worker=x&task=-1&span=&stretch=5,2&stretch=1,x&q=';
    expect(parseFlame(wrong)).toEqual(FLAME_CHOICE);
  });
  it('keeps the stretch and the span that it is of, whatever is selected later', () => {
    const choice = { ...FLAME_CHOICE, scope: 'stretch', stretch: [1.5, 20], span: 4 } as const;
    expect(parseFlame(formatFlame(choice))).toEqual(choice);
  });
});

describe('percent', () => {
  it('is of the whole tree, and never reads as none where there is some', () => {
    expect(flamePercent(REPLY, 40)).toBe('40 %');
    expect(flamePercent(REPLY, 100)).toBe('100 %');
    expect(flamePercent(REPLY, 0.001)).toBe('under 0.01 %');
    expect(flamePercent({ ...REPLY, total: 0 }, 0)).toBe('-');
  });
});
