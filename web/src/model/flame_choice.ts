// What the flame graph is of and how it is shown, and the same in the address. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatDuration } from '../base/format';
import type { Finding } from '../protocol/types';

/** What the weights are: time on the CPU, off it, both, in locks; memory allocated, or alive. */
export type FlameOf = 'cpu' | 'offcpu' | 'time' | 'locks' | 'allocated' | 'live';
export type FlameShows = 'icicle' | 'inverted' | 'time' | 'butterfly' | 'table';
/** What it is compared with: nothing, the measured range, as long a one before it, all of this run,
 * all of another one. */
export type FlameBase = 'none' | 'range' | 'previous' | 'all' | 'run';

export interface FlameFunction {
  name: string;
  module: string;
}

/** How the panel shows the tree, and of what. */
export interface FlameChoice {
  of: FlameOf;
  /** the stretch of time: what is on screen, the measured range, a kept stretch, or all */
  scope: 'screen' | 'range' | 'stretch' | 'all';
  /** the kept stretch: that of what was selected, so that going to moments doesn't change it */
  stretch: readonly [number, number] | null;
  worker: number | null;
  /** only of a task, by its id; only in a span, by its index, and those inside it */
  task: string | null;
  span: number | null;
  /** "name=value", or a name alone */
  label: string;
  /** of waits: what stands on top; and with workers that wait for work */
  top: 'reason' | 'call' | 'none';
  parked: boolean;
  /** of the heap: allocations, not bytes */
  counts: boolean;
  /** a frame is a line of a function */
  lines: boolean;
  shows: FlameShows;
  /** of the butterfly; null: none is chosen yet */
  around: FlameFunction | null;
  base: FlameBase;
  /** the other run, by its id, where that is the base */
  baseRun: string | null;
  search: string;
}

export const FLAME_CHOICE: FlameChoice = {
  of: 'cpu',
  scope: 'screen',
  stretch: null,
  worker: null,
  task: null,
  span: null,
  label: '',
  top: 'reason',
  parked: false,
  counts: false,
  lines: false,
  shows: 'icicle',
  around: null,
  base: 'none',
  baseRun: null,
  search: '',
};

/** Of everything, whatever it was of before; how it is shown stays, but for what is of one tree. */
export const WHOLE_CHOICE = {
  worker: null,
  task: null,
  span: null,
  label: '',
  around: null,
  base: 'none',
  baseRun: null,
  search: '',
} as const;

/** What a finding is about: exactly its stretch, on its worker or of its task; null: no moment. */
export function findingChoice(
  finding: Pick<Finding, 'at_ns' | 'end_ns' | 'worst_ns' | 'task'>,
  worker: number | null,
): Partial<FlameChoice> | null {
  const { at_ns: from, end_ns: end, worst_ns: worst, task } = finding;
  if (from === null) return null;
  const to = end ?? from + (worst ?? 0);
  if (to <= from) return null;
  const subject = worker !== null ? { worker } : task !== null ? { task } : {};
  return { ...WHOLE_CHOICE, of: 'time', scope: 'stretch', stretch: [from, to], ...subject };
}

const OFS: readonly string[] = ['cpu', 'offcpu', 'time', 'locks', 'allocated', 'live'];
const BASES: readonly string[] = ['range', 'previous', 'all', 'run'];

export const isHeap = (of: FlameOf) => of === 'allocated' || of === 'live';
export const hasWaits = (of: FlameOf) => of === 'offcpu' || of === 'time';

/** A choice from the address; what can't be understood is as usual. */
export function parseFlame(text: string): FlameChoice {
  const out = { ...FLAME_CHOICE };
  const around = { name: '', module: '' };
  for (const [name, value] of new URLSearchParams(text)) {
    if (name === 'of' && OFS.includes(value)) out.of = value as FlameOf;
    else if (name === 'scope' && (value === 'range' || value === 'all')) out.scope = value;
    else if (name === 'stretch') keepStretch(out, value);
    else if (name === 'worker' && /^\d+$/.test(value)) out.worker = Number(value);
    else if (name === 'task' && /^\d+$/.test(value)) out.task = value;
    else if (name === 'span' && /^\d+$/.test(value)) out.span = Number(value);
    else if (name === 'label') out.label = value;
    else if (name === 'top' && (value === 'call' || value === 'none')) out.top = value;
    else if (name === 'parked') out.parked = value === '1';
    else if (name === 'counts') out.counts = value === '1';
    else if (name === 'lines') out.lines = value === '1';
    else if (name === 'inverted' && value === '1') out.shows = 'inverted';
    else if (name === 'table' && value === '1') out.shows = 'table';
    else if (name === 'view' && (value === 'time' || value === 'butterfly')) out.shows = value;
    else if (name === 'fn') around.name = value;
    else if (name === 'mod') around.module = value;
    else if (name === 'base' && BASES.includes(value)) out.base = value as FlameBase;
    else if (name === 'base_run' && value !== '') out.baseRun = value;
    else if (name === 'q') out.search = value;
  }
  if (around.name !== '') out.around = around;
  if (out.base === 'run' && out.baseRun === null) out.base = 'none';
  if (out.base !== 'run') out.baseRun = null;
  return out;
}

function keepStretch(out: FlameChoice, value: string): void {
  const [from, to, more] = value.split(',').map(Number);
  if (from === undefined || to === undefined || more !== undefined || !(from <= to)) return;
  if (!Number.isFinite(from) || !Number.isFinite(to)) return;
  [out.scope, out.stretch] = ['stretch', [from, to]];
}

/** Without what is as usual. */
export function formatFlame(choice: FlameChoice): string {
  const out = new URLSearchParams();
  if (choice.of !== 'cpu') out.set('of', choice.of);
  if (choice.scope === 'range' || choice.scope === 'all') out.set('scope', choice.scope);
  if (choice.scope === 'stretch' && choice.stretch) out.set('stretch', choice.stretch.join(','));
  if (choice.worker !== null) out.set('worker', String(choice.worker));
  if (choice.task !== null) out.set('task', choice.task);
  if (choice.span !== null) out.set('span', String(choice.span));
  if (choice.label !== '') out.set('label', choice.label);
  if (choice.top !== 'reason') out.set('top', choice.top);
  if (choice.parked) out.set('parked', '1');
  if (choice.counts) out.set('counts', '1');
  if (choice.lines) out.set('lines', '1');
  if (choice.shows === 'inverted' || choice.shows === 'table') out.set(choice.shows, '1');
  if (choice.shows === 'time' || choice.shows === 'butterfly') out.set('view', choice.shows);
  if (choice.around) out.set('fn', choice.around.name);
  if (choice.around && choice.around.module !== '') out.set('mod', choice.around.module);
  if (choice.base !== 'none') out.set('base', choice.base);
  if (choice.base === 'run' && choice.baseRun !== null) out.set('base_run', choice.baseRun);
  if (choice.search !== '') out.set('q', choice.search);
  return out.toString();
}

export type Stretch = readonly [number, number];

/** The stretch that a choice compares with; null: the whole trace. */
export function baseStretch(
  base: FlameBase,
  stretch: Stretch | null,
  range: Stretch | null,
): Stretch | null {
  if (base === 'range') return range;
  if (base !== 'previous' || !stretch) return null;
  return [Math.max(stretch[0] - (stretch[1] - stretch[0]), 0), Math.max(stretch[0], 0)];
}

/** What both sides of a comparison are of, in words; `baseName` is the other run's. */
export function comparedText(
  scope: FlameChoice['scope'],
  stretch: Stretch | null,
  { base, span }: Pick<FlameChoice, 'base' | 'span'>,
  before: Stretch | null,
  baseName: string,
): string {
  const length = (of: Stretch | null) => (of ? `, ${formatDuration(of[1] - of[0])}` : '');
  const now = span !== null && scope === 'all' ? `span #${span}` : SCOPE_TEXTS[scope];
  return `now: ${now}${length(stretch)}; before: ${BASE_TEXTS[base](baseName)}${length(before)}`;
}

const SCOPE_TEXTS: Readonly<Record<FlameChoice['scope'], string>> = {
  screen: 'what is on screen',
  range: 'the measured range',
  stretch: 'the kept stretch',
  all: 'the whole trace',
};
const BASE_TEXTS: Readonly<Record<FlameBase, (name: string) => string>> = {
  none: () => 'nothing',
  range: () => 'the measured range',
  previous: () => 'the time before it',
  all: () => 'the whole trace',
  run: (name) => `the whole of ${name}`,
};
