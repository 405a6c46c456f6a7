// What the tile columns mean, one type a track kind; and where each row lies on screen. A group
// is a heading with rows of one height under it; a folded group keeps its heading only. Pure.
// Spec: docs/spec/http_api.md (columns), docs/guide/viewer.md (groups).
// SPDX-License-Identifier: Apache-2.0
import { type Columns, NO_INDEX } from '../protocol/columns';

export const EMPTY_MODE = 0;
export const EXACT_MODE = 1;
export const BINS_MODE = 2;

export const POLL = 0;
export const PARK = 1;
export const WAIT = 2;

export interface LaneTile {
  mode: Uint8Array;
  rows: Uint32Array;
  brows: Uint32Array;
  start: Float64Array;
  dur: Float64Array;
  kind: Uint8Array;
  index: Uint32Array;
  task: Uint32Array;
  loc: Uint32Array;
  flag: Uint8Array;
  /** when the task of a poll became ready; NaN: not known */
  ready: Float64Array;
  bin: Uint32Array;
  poll: Float32Array;
  park: Float32Array;
  wait: Float32Array;
  n: Uint32Array;
  maxdur: Float32Array;
  maxidx: Uint32Array;
  tasks: string[];
  locs: string[];
}

export function laneTile(columns: Columns): LaneTile {
  return {
    mode: columns.u8('mode'),
    rows: columns.u32('rows'),
    brows: columns.u32('brows'),
    start: columns.f64('start'),
    dur: columns.f64('dur'),
    kind: columns.u8('kind'),
    index: columns.u32('index'),
    task: columns.u32('task'),
    loc: columns.u32('loc'),
    flag: columns.u8('flag'),
    ready: columns.f64('ready'),
    bin: columns.u32('bin'),
    poll: columns.f32('poll'),
    park: columns.f32('park'),
    wait: columns.f32('wait'),
    n: columns.u32('n'),
    maxdur: columns.f32('maxdur'),
    maxidx: columns.u32('maxidx'),
    tasks: columns.text('tasks'),
    locs: columns.text('locs'),
  };
}

export interface SpanTile {
  mode: Uint8Array;
  rows: Uint32Array;
  brows: Uint32Array;
  start: Float64Array;
  dur: Float64Array;
  index: Uint32Array;
  name: Uint32Array;
  flag: Uint8Array;
  bin: Uint32Array;
  busy: Float32Array;
  n: Uint32Array;
  maxdur: Float32Array;
  maxidx: Uint32Array;
  names: string[];
}

export function spanTile(columns: Columns): SpanTile {
  return {
    mode: columns.u8('mode'),
    rows: columns.u32('rows'),
    brows: columns.u32('brows'),
    start: columns.f64('start'),
    dur: columns.f64('dur'),
    index: columns.u32('index'),
    name: columns.u32('name'),
    flag: columns.u8('flag'),
    bin: columns.u32('bin'),
    busy: columns.f32('busy'),
    n: columns.u32('n'),
    maxdur: columns.f32('maxdur'),
    maxidx: columns.u32('maxidx'),
    names: columns.text('names'),
  };
}

export interface QueueTile {
  series: Uint32Array;
  bin: Uint32Array;
  min: Float32Array;
  max: Float32Array;
  last: Float32Array;
  carry: Float32Array;
}

export function queueTile(columns: Columns): QueueTile {
  return {
    series: columns.u32('series'),
    bin: columns.u32('bin'),
    min: columns.f32('min'),
    max: columns.f32('max'),
    last: columns.f32('last'),
    carry: columns.f32('carry'),
  };
}

export interface EventTile {
  time: Float64Array;
  index: Uint32Array;
  value: Float64Array;
  bin: Uint32Array;
  n: Uint32Array;
  min: Float32Array;
  max: Float32Array;
  maxidx: Uint32Array;
}

export function eventTile(columns: Columns): EventTile {
  return {
    time: columns.f64('time'),
    index: columns.u32('index'),
    value: columns.f64('value'),
    bin: columns.u32('bin'),
    n: columns.u32('n'),
    min: columns.f32('min'),
    max: columns.f32('max'),
    maxidx: columns.u32('maxidx'),
  };
}

export interface SampleTile {
  mode: Uint8Array;
  rows: Uint32Array;
  brows: Uint32Array;
  time: Float64Array;
  index: Uint32Array;
  bin: Uint32Array;
  n: Uint32Array;
  /** the first sample of the bin; they are numbered through */
  first: Uint32Array;
}

export function sampleTile(columns: Columns): SampleTile {
  return {
    mode: columns.u8('mode'),
    rows: columns.u32('rows'),
    brows: columns.u32('brows'),
    time: columns.f64('time'),
    index: columns.u32('index'),
    bin: columns.u32('bin'),
    n: columns.u32('n'),
    first: columns.u32('first'),
  };
}

/** The name that a row refers to, or null. */
export function nameAt(names: readonly string[], index: number | undefined): string | null {
  return index === undefined || index === NO_INDEX ? null : (names[index] ?? null);
}
