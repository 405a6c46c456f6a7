// Where each row of the timeline lies. One function decides it for drawing, for hit tests and for
// the labels, so that the three can't disagree. Pure. Guide: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
import type { CustomType, Summary } from '../protocol/types';

export type GroupKind = 'workers' | 'queues' | 'spans' | 'custom';

export interface Row {
  kind: GroupKind;
  /** lane of a worker, series of a queue, row of the spans, index of a custom type */
  id: number;
  label: string;
  title: string;
  top: number;
  height: number;
}

export interface Group {
  kind: GroupKind;
  label: string;
  count: number;
  top: number;
  isFolded: boolean;
  rows: Row[];
}

export interface Layout {
  groups: Group[];
  height: number;
}

export const HEADING_PX = 22;
export const LANE_PX = 30;
export const QUEUE_PX = 40;
export const SPAN_PX = 16;
export const CUSTOM_PX = 34;
const GAP_PX = 6;
/** More rows than this are never laid out; the heading says how many there are. */
export const MOST_ROWS = 1024;

interface Entry {
  id: number;
  label: string;
  title: string;
}

export function layOut(summary: Summary, folded: readonly string[]): Layout {
  const groups: Group[] = [];
  let top = 0;
  const add = (
    kind: GroupKind,
    label: string,
    height: number,
    count: number,
    entries: Entry[],
  ) => {
    if (count === 0) return;
    const isFolded = folded.includes(kind);
    const group: Group = { kind, label, count, top, isFolded, rows: [] };
    top += HEADING_PX;
    if (!isFolded) {
      for (const entry of entries) {
        group.rows.push({ kind, ...entry, top, height });
        top += height;
      }
    }
    top += GAP_PX;
    groups.push(group);
  };
  const { workers, queues, custom } = summary;
  add('queues', 'Queues', QUEUE_PX, queues.length, queues.slice(0, MOST_ROWS).map(queueEntry));
  add('workers', 'Workers', LANE_PX, workers.length, workers.slice(0, MOST_ROWS).map(workerEntry));
  add('custom', 'Events', CUSTOM_PX, custom.length, custom.slice(0, MOST_ROWS).map(customEntry));
  const rows = Math.min(summary.span_rows, MOST_ROWS);
  const spans = Array.from({ length: rows }, (_, id) => ({
    id,
    label: '',
    title: `span row ${id + 1}`,
  }));
  add('spans', 'Spans', SPAN_PX, summary.span_rows === 0 ? 0 : summary.spans, spans);
  return { groups, height: top };
}

const workerEntry = (worker: Summary['workers'][number]): Entry => ({
  id: worker.lane,
  label: worker.name,
  title: `${worker.name}${worker.runtime ? ` of ${worker.runtime}` : ''}${
    worker.tid === null ? '' : `, thread ${worker.tid}`
  }`,
});
const queueEntry = (queue: Summary['queues'][number]): Entry => ({
  id: queue.series,
  label: queue.name,
  title: `${queue.name} (${queue.kind})`,
});
const customEntry = (type: Summary['custom'][number], id: number): Entry => {
  const field = valueField(type);
  const value = field ? `, drawn by ${field.name}${field.unit ? ` in ${field.unit}` : ''}` : '';
  return { id, label: type.type, title: `${type.type}: ${type.count} events${value}` };
};

/** The field whose values a custom type's row draws: its first number, or none. */
export function valueField(
  type: CustomType | undefined,
): CustomType['fields'][number] | undefined {
  return type?.fields.find((field) => field.is_number);
}

/** The rows that touch [top, bottom), in order. */
export function rowsIn(layout: Layout, top: number, bottom: number): Row[] {
  const out: Row[] = [];
  for (const group of layout.groups) {
    for (const row of group.rows) {
      if (row.top + row.height > top && row.top < bottom) out.push(row);
    }
  }
  return out;
}

/** The row at a height, or null (a heading or a gap). */
export function rowAt(layout: Layout, y: number): Row | null {
  return rowsIn(layout, y, y + 0.001)[0] ?? null;
}

/** The row of a worker's lane, or null (none such, or folded). */
export function laneRow(layout: Layout, lane: number): Row | null {
  const group = layout.groups.find((candidate) => candidate.kind === 'workers');
  return group?.rows.find((row) => row.id === lane) ?? null;
}
