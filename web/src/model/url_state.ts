// The view in the URL's fragment, so that a link shows what its sender saw. Additive only: a
// parameter keeps its name and meaning for ever; unknown ones are kept as they are.
// Documented in docs/guide/viewer.md, "Links".
// SPDX-License-Identifier: Apache-2.0

import type { DetailsOf } from '../protocol/client';
import { type FlameChoice, formatFlame, parseFlame } from './flame_choice';

export type Panel = 'findings' | 'details' | 'task' | 'recorder';

export interface Selection {
  what: DetailsOf;
  index: number;
}

/** A place in a lane whose park or kernel wait is selected; those have no number of their own. */
export interface Spot {
  lane: number;
  at: number;
}

export interface UrlState {
  run: string | null;
  /** ns from the trace's start */
  start: number | null;
  end: number | null;
  task: string | null;
  selection: Selection | null;
  /** the selected park or kernel wait */
  spot: Spot | null;
  panel: Panel | null;
  /** the measured range: [from, to] in ns */
  range: [number, number] | null;
  /** names of track groups that are folded */
  folded: string[];
  /** pages of groups with more rows than one page holds, from 0 */
  pages: Readonly<Record<string, number>>;
  /** the field that a custom type draws, where one was chosen; else see valueField() */
  fields: Readonly<Record<string, string>>;
  /** vertical scroll in CSS pixels */
  scroll: number | null;
  /** the finding that j and k stand on */
  finding: number | null;
  /** the flame graph, where it is open: see parseFlame() */
  flame: FlameChoice | null;
  rest: [string, string][];
}

export const EMPTY: UrlState = {
  run: null,
  start: null,
  end: null,
  task: null,
  selection: null,
  spot: null,
  panel: null,
  range: null,
  folded: [],
  pages: {},
  fields: {},
  scroll: null,
  finding: null,
  flame: null,
  rest: [],
};

const PANELS: readonly string[] = ['findings', 'details', 'task', 'recorder'];
const KINDS: Readonly<Record<string, Selection['what']>> = {
  poll: 'polls',
  span: 'spans',
  event: 'events',
  sample: 'samples',
  dump: 'dumps',
  wait: 'waits',
};
const NAMES: Readonly<Record<Selection['what'], string>> = {
  polls: 'poll',
  spans: 'span',
  events: 'event',
  samples: 'sample',
  dumps: 'dump',
  waits: 'wait',
};

/** Reads a fragment ("#run=…"); what can't be understood counts as missing. */
export function parseUrl(fragment: string): UrlState {
  const out = { ...EMPTY, folded: [] as string[], rest: [] as [string, string][] };
  const pages: Record<string, number> = {};
  const fields: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ''))) {
    if (name === 'run') out.run = value || null;
    else if (name === 't0') out.start = toNumber(value);
    else if (name === 't1') out.end = toNumber(value);
    else if (name === 'task') out.task = /^\d+$/.test(value) ? value : null;
    else if (name === 'panel') out.panel = PANELS.includes(value) ? (value as Panel) : null;
    else if (name === 'fold') out.folded = value.split(',').filter((part) => part !== '');
    else if (name === 'park') out.spot = toSpot(value);
    else if (name === 'page') addPage(pages, value);
    else if (name === 'field') addField(fields, value);
    else if (name === 'y') out.scroll = toNumber(value);
    else if (name === 'finding') out.finding = toNumber(value);
    else if (name === 'flame') out.flame = parseFlame(value);
    else if (name === 'range') out.range = toRange(value);
    else if (name in KINDS) out.selection = toSelection(name, value) ?? out.selection;
    else out.rest.push([name, value]);
  }
  if (out.start === null || out.end === null || out.end <= out.start) out.start = out.end = null;
  return { ...out, pages, fields };
}

/** The fragment of a state, without what equals the default. */
export function formatUrl(state: UrlState): string {
  const out = new URLSearchParams();
  if (state.run !== null) out.set('run', state.run);
  if (state.start !== null && state.end !== null) {
    out.set('t0', toText(state.start));
    out.set('t1', toText(state.end));
  }
  if (state.task !== null) out.set('task', state.task);
  if (state.selection) out.set(NAMES[state.selection.what], String(state.selection.index));
  if (state.spot) out.set('park', `${state.spot.lane}@${toText(state.spot.at)}`);
  if (state.panel) out.set('panel', state.panel);
  if (state.range) out.set('range', state.range.map(toText).join('-'));
  if (state.folded.length > 0) out.set('fold', state.folded.join(','));
  for (const [group, page] of Object.entries(state.pages)) {
    if (page > 0) out.append('page', `${group}:${page + 1}`);
  }
  for (const [type, field] of Object.entries(state.fields)) {
    out.append('field', JSON.stringify([type, field]));
  }
  if (state.scroll) out.set('y', String(Math.round(state.scroll)));
  if (state.finding !== null) out.set('finding', String(state.finding));
  if (state.flame) out.set('flame', formatFlame(state.flame));
  for (const [name, value] of state.rest) out.append(name, value);
  const text = out.toString();
  return text ? `#${text}` : '';
}

function toNumber(value: string): number | null {
  const number = value === '' ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : null;
}

// Tenths of a nanosecond are enough: the least view is 100 ns wide.
const toText = (ns: number) => String(Math.round(ns * 10) / 10);

function toSelection(name: string, value: string): Selection | null {
  const what = KINDS[name];
  const index = toNumber(value);
  return what && index !== null && Number.isInteger(index) && index >= 0 ? { what, index } : null;
}

function toSpot(value: string): Spot | null {
  const [lane, at] = value.split('@').map(toNumber);
  return lane != null && at != null && Number.isInteger(lane) && lane >= 0 ? { lane, at } : null;
}

/** "spans:2" is the second page. */
function addPage(pages: Record<string, number>, value: string): void {
  const [group = '', text = ''] = value.split(':');
  const page = toNumber(text);
  if (page !== null && Number.isInteger(page) && page > 1) pages[group] = page - 1;
}

/** A type's and a field's name as JSON, since both may hold any character. */
function addField(fields: Record<string, string>, value: string): void {
  try {
    const [type, field] = JSON.parse(value) as unknown[];
    if (typeof type === 'string' && typeof field === 'string') fields[type] = field;
  } catch {
    // Not written by us: counts as missing.
  }
}

function toRange(value: string): [number, number] | null {
  const match = /^(-?[\d.]+)-(-?[\d.]+)$/.exec(value);
  const from = toNumber(match?.[1] ?? '');
  const to = toNumber(match?.[2] ?? '');
  return from !== null && to !== null && to > from ? [from, to] : null;
}
