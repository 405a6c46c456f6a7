// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { FlameDiffReply, FlameReply } from '../protocol/types';
import {
  butterflyBoxes,
  changeOf,
  diffTree,
  flameBoxes,
  flameFacts,
  flameMatches,
  flameName,
  flamePercent,
  flameReasons,
  flameTree,
  foundText,
  pathTo,
  pointsText,
  unwoundText,
} from './flame';

/** main (100): work (60): hash (40); main: idle (30). */
const REPLY: FlameReply = {
  title: 'CPU time',
  counts: 'sample',
  unit: 'ns',
  inverted: false,
  by_line: false,
  uncertain: false,
  order: 'heavy',
  total: 100,
  whole: 100,
  count: 10,
  truncated: 0,
  unwound: { tables: 100 },
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
    { function: null, parent: null, start: 0, self: 0, total: 100, left_out: 0 },
    { function: 0, parent: 0, start: 0, self: 10, total: 100, left_out: 0 },
    { function: 1, parent: 1, start: 0, self: 20, total: 60, left_out: 0 },
    { function: 2, parent: 2, start: 0, self: 40, total: 40, left_out: 0 },
    { function: 3, parent: 1, start: 60, self: 30, total: 30, left_out: 0 },
  ],
};
const tree = flameTree(REPLY);

describe('the flame tree', () => {
  it('has no share of what was not recorded', () => {
    const nothing = flameTree({ ...REPLY, total: null, whole: null, functions: [], nodes: [] });
    expect(flamePercent(nothing.reply, 5)).toBe('-');
    const found = { functions: new Set<number>(), weight: 0 };
    expect(foundText({ ...nothing, reply: { ...nothing.reply, nodes_left_out: 1 } }, found)).toBe(
      '- in 0 functions',
    );
  });

  it('tells how its stacks were found, by share, and that some are cut short', () => {
    expect(unwoundText(REPLY)).toBe('stacks: 100 % by unwind tables');
    const mixed = { tables: 70, frame_pointers: 20, mixed: 0, unknown: 10 };
    expect(unwoundText({ ...REPLY, unwound: mixed, truncated: 5 })).toBe(
      'stacks: 70 % by unwind tables, 20 % by frame pointers, 10 % not recorded how, 5 % cut short',
    );
  });
  it('says nothing of stacks that tell nothing', () => {
    expect(unwoundText({ ...REPLY, unwound: { unknown: 60, no_stack: 40 } })).toBe('');
  });
  it('lays children out below their parent, side by side', () => {
    const boxes = flameBoxes(tree, 0, 0);
    expect(boxes).toHaveLength(5);
    const idle = boxes.find((box) => box.node === 4);
    expect(idle?.row).toBe(2);
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
  it('shows the line of a frame by line, where it is known', () => {
    const functions = REPLY.functions.map((of, at) =>
      at === 1 ? { ...of, file: '/src/shop.cc', line: 12 } : of,
    );
    expect(flameName({ ...REPLY, functions }, 2)).toBe('work');
    expect(flameName({ ...REPLY, functions, by_line: true }, 2)).toBe('work (shop.cc:12)');
    expect(flameName({ ...REPLY, functions, by_line: true }, 3)).toBe('Hash');
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

describe('a butterfly', () => {
  it('stands on the row of its function, callers above and callees below', () => {
    const callers = flameTree({ ...REPLY, inverted: true });
    const boxes = butterflyBoxes(flameTree(REPLY), callers, 0);
    const rows = (part: number) =>
      boxes.filter((box) => box.part === part).map((box) => [box.node, box.row]);
    // Callers: work and idle call main, hash calls work. Callees: main calls work, work calls hash.
    expect(rows(1).sort()).toEqual([[2, 1], [3, 0], [4, 1]]);
    expect(rows(0).sort()).toEqual([[1, 2], [2, 3], [3, 4], [4, 3]]);
  });
  it('gives percents of all that was taken', () => {
    const part = { ...REPLY, whole: 400 };
    expect(flameFacts(flameTree(part), 2)[0]).toBe('total 60 ns, 15 %');
  });
});

describe('a difference', () => {
  const DIFF: FlameDiffReply = {
    ...REPLY,
    whole: [100, 200],
    count: [10, 20],
    width: 2000,
    before: 'old.bin',
    notes_before: [],
    notes_compared: [],
    functions: [
      { name: 'gone', module: '', self: [25, 0], total: [25, 0] },
      { name: 'same', module: '', self: [75, 150], total: [75, 150] },
      { name: 'new', module: '', self: [0, 50], total: [0, 50] },
    ],
    nodes: [
      { function: null, parent: null, start: 0, self: [0, 0], total: [100, 200], width: 2000 },
      { function: 1, parent: 0, start: 0, self: [75, 150], total: [75, 150], width: 1500 },
      { function: 0, parent: 0, start: 1500, self: [25, 0], total: [25, 0], width: 250 },
      { function: 2, parent: 0, start: 1750, self: [0, 50], total: [0, 50], width: 250 },
    ],
  };
  const tree = diffTree(DIFF);
  it('is measured by each side’s own sum', () => {
    expect(changeOf(DIFF, [75, 150])).toBe(0);
    expect(changeOf(DIFF, [25, 0])).toBe(-1);
    expect(changeOf(DIFF, [0, 50])).toBe(1);
    expect(changeOf(DIFF, [0, 0])).toBe(0);
    expect(pointsText(DIFF, [0, 50])).toBe('+25 points');
    expect(flameFacts(tree, 1)[0]).toBe('total 75 ns, 75 % → 150 ns, 75 % (0 points)');
  });
  it('leaves nothing of either side without a width', () => {
    const widths = flameBoxes(tree, 0, 0).map((box) => [box.node, box.right - box.left]);
    expect(widths.sort()).toEqual([[0, 1], [1, 0.75], [2, 0.125], [3, 0.125]]);
  });
  it('is searched by the same definition of percent', () => {
    const found = flameMatches(tree, 'n'); // gone, new
    expect(found && foundText(tree, found)).toBe(
      '25 ns, 25 % → 50 ns, 25 % (0 points) in 2 functions',
    );
  });
});

describe('reasons', () => {
  it('are those of the frame next to the root, for all below it', () => {
    const names = ['[on CPU]', 'main', '[blocked: lock]', 'futex'];
    const reply = {
      ...REPLY,
      functions: names.map((name) => ({ name, module: '', self: 0, total: 1 })),
      nodes: [null, 0, 1, 0, 3].map((parent, at) => ({
        function: at === 0 ? null : at - 1,
        parent,
        start: 0,
        self: 0,
        total: 1,
        left_out: 0,
      })),
    };
    expect(flameReasons(flameTree(reply))).toEqual([null, 'on-cpu', 'on-cpu', 'lock', 'lock']);
  });
});

describe('a search in a tree that lacks frames', () => {
  it('says that there may be more', () => {
    const cut = flameTree({ ...REPLY, nodes_left_out: 3 });
    const found = flameMatches(cut, 'hash');
    expect(found && foundText(cut, found)).toBe('at least 40 % in 1 function');
  });
});

describe('percent', () => {
  it('is of the whole tree, and never reads as none where there is some', () => {
    expect(flamePercent(REPLY, 40)).toBe('40 %');
    expect(flamePercent(REPLY, 100)).toBe('100 %');
    expect(flamePercent(REPLY, 0.001)).toBe('under 0.01 %');
    expect(flamePercent({ ...REPLY, whole: 0 }, 0)).toBe('-');
  });
});
