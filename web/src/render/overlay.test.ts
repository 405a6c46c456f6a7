// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Frame } from './frame';
import { drawLoss } from './overlay';

/** What is drawn: the clipped areas and the number of lines in them. */
function drawn(losses: { first_ns: number; last_ns: number }[]) {
  const areas: [number, number, number, number][] = [];
  let lines = 0;
  const ctx = {
    save() {},
    restore() {},
    beginPath() {},
    clip() {},
    stroke() {},
    rect: (...area: [number, number, number, number]) => areas.push(area),
    moveTo: () => {
      lines += 1;
    },
    lineTo() {},
  };
  const palette = { loss: { css: 'red' } };
  const view = { start: 0, end: 1_000 };
  const frame = { ctx, palette, view, width: 500, height: 90, ratio: 1 } as unknown as Frame;
  drawLoss(
    frame,
    losses.map((loss) => ({ cause: 'arena_full', count: null, ...loss })),
  );
  return { areas, lines };
}

it('hatches the time of a loss over all rows, also of one whose size is unknown', () => {
  const { areas, lines } = drawn([{ first_ns: 200, last_ns: 600 }]);
  expect(areas).toEqual([[100, 0, 200, 90]]);
  expect(lines).toBeGreaterThan(20);
});

it('lets no loss be too short to be seen', () => {
  expect(drawn([{ first_ns: 200, last_ns: 200 }]).areas).toEqual([[100, 0, 4, 90]]);
});

it('draws none that lies outside the view, and of others the part that is inside', () => {
  expect(drawn([{ first_ns: -300, last_ns: -100 }]).areas).toEqual([]);
  expect(drawn([{ first_ns: 800, last_ns: 9_000 }]).areas).toEqual([[400, 0, 100, 90]]);
});
