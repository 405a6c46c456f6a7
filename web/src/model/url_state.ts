// The view in the URL's fragment, so that a link shows what its sender saw. Additive only: a
// parameter keeps its name and meaning for ever; unknown ones are kept as they are.
// Documented in docs/guide/viewer.md, "Links".
// SPDX-License-Identifier: Apache-2.0

export type Panel = 'findings' | 'details' | 'task';

export interface Selection {
  what: 'polls' | 'spans' | 'events';
  index: number;
}

export interface UrlState {
  run: string | null;
  /** ns from the trace's start */
  start: number | null;
  end: number | null;
  task: string | null;
  selection: Selection | null;
  panel: Panel | null;
  /** the measured range: [from, to] in ns */
  range: [number, number] | null;
  /** names of track groups that are folded */
  folded: string[];
  /** vertical scroll in CSS pixels */
  scroll: number | null;
  /** the finding that j and k stand on */
  finding: number | null;
  rest: [string, string][];
}

export const EMPTY: UrlState = {
  run: null,
  start: null,
  end: null,
  task: null,
  selection: null,
  panel: null,
  range: null,
  folded: [],
  scroll: null,
  finding: null,
  rest: [],
};

const PANELS: readonly string[] = ['findings', 'details', 'task'];
const KINDS: Readonly<Record<string, Selection['what']>> = {
  poll: 'polls',
  span: 'spans',
  event: 'events',
};
const NAMES: Readonly<Record<Selection['what'], string>> = {
  polls: 'poll',
  spans: 'span',
  events: 'event',
};

/** Reads a fragment ("#run=…"); what can't be understood counts as missing. */
export function parseUrl(fragment: string): UrlState {
  const out: UrlState = { ...EMPTY, folded: [], rest: [] };
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ''))) {
    if (name === 'run') out.run = value || null;
    else if (name === 't0') out.start = toNumber(value);
    else if (name === 't1') out.end = toNumber(value);
    else if (name === 'task') out.task = /^\d+$/.test(value) ? value : null;
    else if (name === 'panel') out.panel = PANELS.includes(value) ? (value as Panel) : null;
    else if (name === 'fold') out.folded = value.split(',').filter((part) => part !== '');
    else if (name === 'y') out.scroll = toNumber(value);
    else if (name === 'finding') out.finding = toNumber(value);
    else if (name === 'range') out.range = toRange(value);
    else if (name in KINDS) out.selection = toSelection(name, value) ?? out.selection;
    else out.rest.push([name, value]);
  }
  if (out.start === null || out.end === null || out.end <= out.start) out.start = out.end = null;
  return out;
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
  if (state.panel) out.set('panel', state.panel);
  if (state.range) out.set('range', state.range.map(toText).join('-'));
  if (state.folded.length > 0) out.set('fold', state.folded.join(','));
  if (state.scroll) out.set('y', String(Math.round(state.scroll)));
  if (state.finding !== null) out.set('finding', String(state.finding));
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

function toRange(value: string): [number, number] | null {
  const match = /^(-?[\d.]+)-(-?[\d.]+)$/.exec(value);
  const from = toNumber(match?.[1] ?? '');
  const to = toNumber(match?.[2] ?? '');
  return from !== null && to !== null && to > from ? [from, to] : null;
}
