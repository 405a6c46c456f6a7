// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { CustomType, Summary } from '../protocol/types';
import { layOut, MOST_ROWS, pageOf, rowBeside, type RowChoices, valueField } from './layout';

const CHOICES: RowChoices = { folded: [], pages: {}, fields: {} };

function summary(parts: Partial<Summary>): Summary {
  const nothing = { workers: [], queues: [], custom: [], samples: [], spans: 0, span_rows: 0 };
  return { ...nothing, ...parts } as unknown as Summary;
}

const worker = (lane: number) => ({ lane, worker: lane, name: `worker ${lane}` });
const workers = (count: number) =>
  Array.from({ length: count }, (_, lane) => worker(lane)) as unknown as Summary['workers'];

it('shows a group of many rows in pages and says which page it is', () => {
  const many = summary({ spans: 9000, span_rows: 2 * MOST_ROWS + 3 });
  const [first] = layOut(many, CHOICES).groups;
  expect(first?.rows.length).toBe(MOST_ROWS);
  expect([first?.page, first?.pages, first?.rowsTotal]).toEqual([0, 3, 2 * MOST_ROWS + 3]);
  const [last] = layOut(many, { ...CHOICES, pages: { spans: 2 } }).groups;
  const ids = last?.rows.map((row) => row.id);
  expect(ids).toEqual([2 * MOST_ROWS, 2 * MOST_ROWS + 1, 2 * MOST_ROWS + 2]);
});

it('takes a page that there is no more for the last one', () => {
  const choices = { ...CHOICES, pages: { workers: 7 } };
  const [group] = layOut(summary({ workers: workers(5) }), choices).groups;
  expect(group?.page).toBe(0);
  expect(group?.rows.length).toBe(5);
});

it('finds the page of a lane', () => {
  expect([0, MOST_ROWS - 1, MOST_ROWS, 5 * MOST_ROWS].map(pageOf)).toEqual([0, 0, 1, 5]);
});

it('gives threads that are no workers rows of their own', () => {
  const samples = [
    { row: 0, lane: 0, tid: null, name: null, count: 5 },
    { row: 1, lane: null, tid: 77, name: 'logger', count: 3 },
  ];
  const { groups } = layOut(summary({ workers: workers(1), samples }), CHOICES);
  expect(groups.map((group) => group.kind)).toEqual(['workers', 'threads']);
  expect(groups[1]?.rows[0]?.label).toBe('logger');
  expect(groups[1]?.rows[0]?.id).toBe(1);
});

const ORDER: CustomType = {
  type: 'Order',
  count: 1,
  fields: [
    { name: 'note', unit: null, kind: null, is_number: false },
    { name: 'amount', unit: 'count', kind: null, is_number: true },
    { name: 'total', unit: null, kind: null, is_number: true },
  ],
};

it('draws a measured number rather than the name of something', () => {
  const field = (name: string, unit: string | null = null) => ({
    name,
    unit,
    kind: null,
    is_number: true,
  });
  const drawn = (...fields: CustomType['fields']) =>
    valueField({ type: 'Alloc', count: 1, fields }, {})?.name;
  expect(drawn(field('tid'), field('size'), field('addr'))).toBe('size');
  expect(drawn(field('ip_version'), field('backlog'), field('pending', 'count'))).toBe('pending');
  expect(drawn(field('task_id'))).toBe('task_id');
});

it('draws the chosen number of a custom type, else its first', () => {
  expect(valueField(ORDER, {})?.name).toBe('amount');
  expect(valueField(ORDER, { Order: 'total' })?.name).toBe('total');
  expect(valueField(ORDER, { Order: 'note' })?.name).toBe('amount');
  expect(valueField({ ...ORDER, fields: [] }, {})).toBeUndefined();
});

it('goes from row to row over all groups, from a lane on', () => {
  const queues = [{ series: 0, name: 'depth', kind: 'depth' }] as unknown as Summary['queues'];
  const layout = layOut(summary({ queues, workers: workers(2), custom: [ORDER] }), CHOICES);
  const beside = (kind: 'queues' | 'workers' | 'custom', id: number, step: number) => {
    const next = rowBeside(layout, { kind, id }, step);
    return next && 'row' in next ? `${next.row.kind} ${next.row.id}` : next;
  };
  expect(rowBeside(layout, null, 1)).toMatchObject({ row: { kind: 'workers', id: 0 } });
  expect(beside('workers', 0, -1)).toBe('queues 0');
  expect(beside('workers', 1, 1)).toBe('custom 0');
  expect(beside('custom', 0, 1)).toBe('custom 0');
  expect(rowBeside(layOut(summary({}), CHOICES), null, 1)).toBeNull();
});

it('goes to the next page of a group at the end of one', () => {
  const many = summary({ workers: workers(MOST_ROWS + 1), custom: [ORDER] });
  const last = { kind: 'workers' as const, id: MOST_ROWS - 1 };
  expect(rowBeside(layOut(many, CHOICES), last, 1)).toEqual({ kind: 'workers', page: 1 });
  const second = layOut(many, { ...CHOICES, pages: { workers: 1 } });
  const first = { kind: 'workers' as const, id: MOST_ROWS };
  expect(rowBeside(second, first, -1)).toEqual({ kind: 'workers', page: 0 });
  expect(rowBeside(second, first, 1)).toMatchObject({ row: { kind: 'custom' } });
});
