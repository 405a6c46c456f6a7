// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Stall } from '../protocol/types';
import type { Frame } from './frame';
import { drawLoss, drawStalls } from './overlay';

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

/** The heights that are filled for stalls of a whole view, with a bar at the top. */
function heights(stall: { stalled_ns: number | null; is_excuse: boolean }) {
  const filled: number[] = [];
  const ctx = { fillRect: (...area: [number, number, number, number]) => filled.push(area[3]) };
  const palette = { stall: { css: 'teal' } };
  const view = { start: 0, end: 1_000 };
  const frame = { ctx, palette, view, width: 500, height: 90, ratio: 1 } as unknown as Frame;
  const range = { cause: 'steal', text: '', begin_ns: 0, end_ns: 1_000 };
  drawStalls(frame, [{ ...range, ...stall } satisfies Stall]);
  return filled;
}

it('shades a stretch that the platform stalled for a tenth of it and more, or nobody knows', () => {
  expect(heights({ stalled_ns: 100, is_excuse: true })).toEqual([90, 5]);
  expect(heights({ stalled_ns: null, is_excuse: true })).toEqual([90, 5]);
});

it('has the bar alone for a stretch hardly stalled, a thin one for what excuses nothing', () => {
  expect(heights({ stalled_ns: 99, is_excuse: true })).toEqual([5]);
  expect(heights({ stalled_ns: 900, is_excuse: false })).toEqual([2]);
});
