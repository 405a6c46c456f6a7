// The JSON replies of the server, as docs/spec/http_api.md gives them. Times are ns from the
// trace's start; what isn't known is null. Additive only.
// SPDX-License-Identifier: Apache-2.0

export type RunState = 'closed' | 'loading' | 'ready' | 'failed' | 'cancelled';
export type Severity = 'info' | 'warning' | 'critical';

export interface RunEntry {
  run: string;
  name: string;
  bytes: number;
  files: number;
  modified_ms: number;
  is_sealed: boolean | null;
  /** served to compare with: see `dial9 serve --base` */
  is_base: boolean;
  state: RunState;
}

export interface RunList {
  root: string;
  runs: RunEntry[];
  total: number;
  truncated: boolean;
}

export interface RunStatus {
  run: string;
  state: RunState;
  bytes_done: number;
  bytes_total: number;
  events: number;
  generation: number;
  error: string | null;
}

export interface Worker {
  lane: number;
  worker: number;
  name: string;
  runtime: string | null;
  tid: number | null;
  polls: number;
  busy_ns: number;
  parked_ns: number | null;
}

export interface Anchor {
  at_ns: number;
  realtime_ns: string;
}

/** A time in which the platform held the process up, somewhere between its two ends. */
export interface Stall {
  cause: string;
  text: string;
  begin_ns: number;
  end_ns: number;
  /** at most; null: not told, or it took no time of this clock */
  stalled_ns: number | null;
  /** it was taken off what findings claim; else it may be the process's own doing */
  is_excuse: boolean;
}

export interface Loss {
  cause: string;
  /** Null: not known. */
  count: number | null;
  first_ns: number;
  last_ns: number;
}

export interface CustomType {
  type: string;
  count: number;
  fields: { name: string; unit: string | null; kind: string | null; is_number: boolean }[];
}

/** A row of samples: a worker's lane, or a thread that is none. */
export interface SampleRow {
  row: number;
  lane: number | null;
  tid: number | null;
  name: string | null;
  count: number;
}

/** Units of a class that a budget left out. */
export interface ShedClass {
  class: string;
  count: number;
  most_keep_one_in: number;
  /** the count is a lower bound: the last stretch isn't told to its end */
  is_open: boolean;
}

/** Sums over the recorder's bills. */
export interface Bill {
  bills: number;
  elapsed_ns: number;
  collector_cpu_ns: number;
  host_cpu_ns: number;
  /** What the kernel took for CPU samples: null where there are any, since it isn't known. */
  sample_kernel_ns: number | null;
  bytes: number;
  events: number;
  shed: number;
}

export interface Summary {
  name: string;
  origin_ns: string;
  duration_ns: number;
  anchors: Anchor[];
  anchors_total: number;
  /** the most that wall time by these anchors is off from that by all */
  anchors_error_ns: number;
  events: number;
  by_type: { type: string; count: number }[];
  workers: Worker[];
  tasks: number;
  polls: number;
  spans: number;
  span_rows: number;
  samples: SampleRow[];
  samples_total: number;
  dumps: number;
  metadata: Record<string, string>;
  truncated: { message: string; offset: number | null } | null;
  loss: Loss[];
  /** Null: more is lost than was counted. */
  loss_total: number | null;
  loss_at_least: number;
  stalls: Stall[];
  shed: string[];
  shed_classes: ShedClass[];
  /** null: the trace tells none */
  bill: Bill | null;
  /** how many entries a list lacks, by its name */
  left_out: Record<string, number>;
  custom: CustomType[];
  queues: { series: number; name: string; kind: string }[];
}

export interface Finding {
  kind: string;
  severity: Severity;
  message: string;
  count: number;
  worst_ns: number | null;
  at_ns: number | null;
  end_ns: number | null;
  lane: number | null;
  task: string | null;
  poll: number | null;
  span: number | null;
  where: string | null;
  evidence: string[];
  next: string | null;
}

export interface FindingList {
  findings: Finding[];
  total: number;
}

export interface PollFacts {
  index: number;
  at_ns: number;
  dur_ns: number;
  lane: number | null;
  is_open: boolean;
}

export interface TaskRow {
  what: 'spawn' | 'wake' | 'dump' | 'poll' | 'end';
  at_ns: number;
  dur_ns: number | null;
  delay_ns: number | null;
  lane: number | null;
  poll: number | null;
  by: string | null;
  /** of a dump: its number, and the frame that the task waited at */
  dump: number | null;
  where: string | null;
}

export interface TaskLife {
  task: string;
  spawned_ns: number | null;
  spawn_loc: string | null;
  ended_ns: number | null;
  instrumented: boolean | null;
  polls_total: number;
  busy_ns: number;
  worst_poll: PollFacts | null;
  delay: { known: number; worst_ns: number | null };
  first_ns: number | null;
  last_ns: number | null;
  wakes_total: number;
  dumps_total: number;
  migrations: number;
  rows: TaskRow[];
  rows_total: number;
  offset: number;
}

/** A fact of one poll, span or event: `value` is to be shown, `task` and `at_ns` be followed. */
export interface Fact {
  name: string;
  value: string | number | null;
  unit: string | null;
  task?: string;
  at_ns?: number;
}

/** A frame of a call stack; without a name where no symbol is known. */
export interface StackFrame {
  name: string | null;
  file: string | null;
  line: number | null;
  address: string;
  inlined: boolean;
}

/** Where a span's time went; the five add up to its length. */
export interface SpanParts {
  on_cpu_ns: number;
  blocked_ns: number;
  async_wait_ns: number;
  scheduler_delay_ns: number;
  unknown_ns: number;
  unknown: { ns: number; why: string }[];
}

export interface Details {
  what: 'poll' | 'park' | 'wait' | 'span' | 'event' | 'sample' | 'dump' | 'offcpu';
  title: string;
  index: number | null;
  at_ns: number;
  dur_ns: number | null;
  lane: number | null;
  task: string | null;
  facts: Fact[];
  has_id?: boolean;
  parts?: SpanParts;
  frames?: StackFrame[];
}

export interface FlameHead {
  title: string;
  counts: string;
  unit: 'ns' | 'bytes' | 'count';
  inverted: boolean;
  /** a function here is a line of one */
  by_line: boolean;
  /** a note says what the weights lack, or have too much */
  uncertain: boolean;
  notes: string[];
  nodes_left_out: number;
  functions_left_out: number;
}

/** With the file and the line where it is written, or that runs, where they are known. */
interface FlameFunctionHead {
  name: string;
  module: string;
  file?: string;
  line?: number;
}

/** A flame tree; weights are in `unit`. See docs/spec/flame.md. */
export interface FlameReply extends FlameHead {
  order: 'heavy' | 'time';
  /** of all, and what percents are of; null: nothing of it was recorded */
  total: number | null;
  whole: number | null;
  count: number;
  truncated: number;
  /** weights by how their stacks were found; see docs/spec/flame.md */
  unwound: Partial<Record<string, number>>;
  left_out: number;
  /** command lines that show the same; not of parts of a butterfly */
  commands?: string[];
  functions: (FlameFunctionHead & { self: number; total: number })[];
  nodes: {
    function: number | null;
    parent: number | null;
    start: number;
    self: number;
    total: number;
    left_out: number;
  }[];
}

/** The trees around one function. */
export interface FlameButterfly {
  callers: FlameReply;
  callees: FlameReply;
}

/** Before, and now. */
export type Sides = [number, number];

/** Two flame trees as one; a node's `width` is the sum of its shares of both. */
export interface FlameDiffReply extends FlameHead {
  /** null: nothing of it was recorded there */
  whole: [number | null, number | null];
  count: Sides;
  width: number;
  before: string;
  notes_before: string[];
  /** of both beside each other */
  notes_compared: string[];
  functions: (FlameFunctionHead & { self: Sides; total: Sides })[];
  nodes: {
    function: number | null;
    parent: number | null;
    start: number;
    self: Sides;
    total: Sides;
    width: number;
  }[];
}

/** What is behind a frame, by time: samples, waits, lock waits, allocations by their indexes. */
export interface FlameMoments {
  total: number;
  weight: number;
  left_out: number;
  moments: {
    of: 'sample' | 'wait' | 'lock' | 'allocation';
    index: number;
    at_ns: number;
    dur_ns: number;
  }[];
}

export interface SearchHit {
  what: 'task' | 'place' | 'span' | 'event';
  text: string;
  at_ns: number | null;
  task: string | null;
  index: number | null;
}

export interface SearchHits {
  hits: SearchHit[];
  total: number;
}
