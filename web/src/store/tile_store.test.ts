// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Columns } from '../protocol/columns';
import { TileStore } from './tile_store';

function setUp() {
  const asked: string[] = [];
  let arrivals = 0;
  const store = new TileStore<string>(
    {
      name: 'lanes',
      fetch: (chunk, window) => {
        asked.push(`${chunk}@${window.t0}+${window.bin}`);
        return Promise.resolve({ bytes: 10, text: () => [chunk] } as unknown as Columns);
      },
      parse: (columns) => columns.text('x')[0] ?? '',
    },
    () => (arrivals += 1),
  );
  const load = (chunk: string, level: number, index: number) =>
    Promise.all(
      store.jobs([chunk], [{ level, index }]).map((job) => job.run(new AbortController().signal)),
    );
  return { store, asked, load, arrivals: () => arrivals };
}

it('asks for a tile once', async () => {
  const { store, asked, load, arrivals } = setUp();
  await load('0', 3, 5);
  await load('0', 3, 5);
  expect(asked).toEqual([`0@${5 * 1024 * 8}+8`]);
  expect(arrivals()).toBe(1);
  expect(store.find('0', { level: 3, index: 5 })).toMatchObject({ isExactLevel: true });
});

it('lets the nearest coarser tile stand in', async () => {
  const { store, load } = setUp();
  await load('0', 10, 0);
  await load('0', 6, 1);
  const found = store.find('0', { level: 4, index: 5 });
  expect(found).toMatchObject({ id: { level: 6, index: 1 }, isExactLevel: false });
  expect(store.find('0', { level: 4, index: 60 })).toMatchObject({ id: { level: 10, index: 0 } });
});

it('never shows a tile of other rows', async () => {
  const { store, load } = setUp();
  await load('0', 3, 5);
  expect(store.find('16', { level: 3, index: 5 })).toBeNull();
});

it('drops a reply that came after it was given up', async () => {
  const { store } = setUp();
  const controller = new AbortController();
  const [job] = store.jobs(['0'], [{ level: 0, index: 0 }]);
  controller.abort();
  await job?.run(controller.signal);
  expect(store.find('0', { level: 0, index: 0 })).toBeNull();
});
