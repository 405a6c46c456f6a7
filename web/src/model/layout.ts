// Where each row of the timeline lies. One function decides it for drawing, for hit tests and for
// the labels, so that the three can't disagree. Pure. Guide: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
import { plural, unitName } from '../base/format';
import type { CustomType, Summary } from '../protocol/types';

export type GroupKind = 'workers' | 'queues' | 'spans' | 'custom' | 'threads';

export interface Row {
  kind: GroupKind;
  /** lane of a worker, series of a queue, row of the spans or samples, index of a custom type */
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
  /** of its rows, all pages */
  rowsTotal: number;
  /** the page that is laid out, from 0 */
  page: number;
  pages: number;
  rows: Row[];
}

/** What the user has chosen about the rows. */
export interface RowChoices {
  folded: readonly string[];
  pages: Readonly<Record<string, number>>;
  fields: Readonly<Record<string, string>>;
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
export const THREAD_PX = 22;
/** A group with more rows than this is shown in pages. */
export const MOST_ROWS = 1024;

interface Entry {
  id: number;
  label: string;
  title: string;
}

interface GroupRows {
  kind: GroupKind;
  label: string;
  height: number;
  /** what the heading counts */
  count: number;
  rows: number;
  entry: (index: number) => Entry;
}

export function layOut(summary: Summary, choices: RowChoices): Layout {
  const groups: Group[] = [];
  let top = 0;
  for (const { kind, label, height, count, rows, entry } of groupsOf(summary, choices)) {
    if (rows === 0) continue;
    const isFolded = choices.folded.includes(kind);
    const pages = Math.ceil(rows / MOST_ROWS);
    const page = Math.min(choices.pages[kind] ?? 0, pages - 1);
    const group: Group = {
      kind,
      label,
      count,
      top,
      isFolded,
      rowsTotal: rows,
      page,
      pages,
      rows: [],
    };
    top += HEADING_PX;
    const last = isFolded ? 0 : Math.min((page + 1) * MOST_ROWS, rows);
    for (let index = page * MOST_ROWS; index < last; index += 1) {
      group.rows.push({ kind, ...entry(index), top, height });
      top += height;
    }
    top += GAP_PX;
    groups.push(group);
  }
  return { groups, height: top };
}

function groupsOf(summary: Summary, choices: RowChoices): GroupRows[] {
  const { workers, queues, custom } = summary;
  const threads = summary.samples.filter((row) => row.lane === null);
  const from = <T>(items: readonly T[], make: (item: T, index: number) => Entry) => ({
    count: items.length,
    rows: items.length,
    entry: (index: number) => make(items[index] as T, index),
  });
  return [
    { kind: 'queues', label: 'Queues', height: QUEUE_PX, ...from(queues, queueEntry) },
    { kind: 'workers', label: 'Workers', height: LANE_PX, ...from(workers, workerEntry) },
    { kind: 'threads', label: 'Other threads', height: THREAD_PX, ...from(threads, threadEntry) },
    {
      kind: 'custom',
      label: 'Events',
      height: CUSTOM_PX,
      ...from(custom, (type, id) => customEntry(type, id, choices.fields)),
    },
    {
      kind: 'spans',
      label: 'Spans',
      height: SPAN_PX,
      count: summary.spans,
      rows: summary.span_rows,
      entry: (id) => ({ id, label: '', title: `span row ${id + 1}` }),
    },
  ];
}

/** The page of a group that holds its row number `index`. */
export const pageOf = (index: number) => Math.floor(index / MOST_ROWS);

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
const threadEntry = (row: Summary['samples'][number]): Entry => {
  const name = row.name ?? `thread ${row.tid}`;
  const title = `${name}, thread ${row.tid}: ${plural(row.count, 'sample')}`;
  return { id: row.row, label: name, title };
};
const customEntry = (
  type: CustomType,
  id: number,
  fields: Readonly<Record<string, string>>,
): Entry => {
  const field = valueField(type, fields);
  const unit = field?.unit ? ` in ${unitName(field.unit)}` : '';
  const value = field ? `, drawn by ${field.name}${unit}` : '';
  return { id, label: type.type, title: `${type.type}: ${plural(type.count, 'event')}${value}` };
};

/** The numbers of a custom type, of which its row draws one. */
export const numberFields = (type: CustomType) => type.fields.filter((field) => field.is_number);

/** Numbers that name something: they are drawn only where the user asks for it. */
const isName = (name: string) =>
  /(^|[._])(tid|pid|id|addr|address|cookie|inode|port|version|timestamp_ns)$/.test(name);

/**
 * The field whose values a custom type's row draws: the chosen one; else the first with a unit or a
 * kind, the first that isn't a name of something, the first number; or none.
 */
export function valueField(
  type: CustomType | undefined,
  chosen: Readonly<Record<string, string>>,
): CustomType['fields'][number] | undefined {
  if (!type) return undefined;
  const numbers = numberFields(type);
  return (
    numbers.find((field) => field.name === chosen[type.type]) ??
    numbers.find((field) => field.unit !== null || field.kind !== null) ??
    numbers.find((field) => !isName(field.name)) ??
    numbers[0]
  );
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

/** What names a row whatever is laid out. */
export type RowName = Pick<Row, 'kind' | 'id'>;

/** The row of a name, or null (none such, folded, or on another page). */
export function rowOfName(layout: Layout, name: RowName): Row | null {
  const group = layout.groups.find((candidate) => candidate.kind === name.kind);
  return group?.rows.find((row) => row.id === name.id) ?? null;
}

/**
 * The row that is `step` (1 or -1) from another; at the end of a group's page its next page, which
 * the caller turns to. From nowhere: the first lane of a worker, else the first row. Null: none.
 */
export function rowBeside(
  layout: Layout,
  from: RowName | null,
  step: number,
): { row: Row } | { kind: GroupKind; page: number } | null {
  const rows = layout.groups.flatMap((group) => group.rows);
  const at = rows.findIndex((row) => row.kind === from?.kind && row.id === from.id);
  if (at < 0) {
    const row = rows.find(({ kind }) => kind === 'workers') ?? rows[0];
    return row ? { row } : null;
  }
  const [here, next] = [rows[at], rows[at + step]];
  const group = layout.groups.find(({ kind }) => kind === here?.kind);
  const page = (group?.page ?? 0) + step;
  if (here && group && next?.kind !== here.kind && page >= 0 && page < group.pages) {
    return { kind: here.kind, page };
  }
  return here ? { row: next ?? here } : null;
}
