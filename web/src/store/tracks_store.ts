// All tiles of an open run: which chunk of rows a row belongs to, what a view needs, in which order
// it is asked for (what is seen first, then a coarse stand-in for everything, then neighbours).
// SPDX-License-Identifier: Apache-2.0
import { type Row, valueField } from '../model/layout';
import { levelFor, neighbours, type TileId, tilesIn } from '../model/tiles';
import {
  type EventTile,
  eventTile,
  type LaneTile,
  laneTile,
  type QueueTile,
  queueTile,
  type SampleTile,
  sampleTile,
  type SpanTile,
  spanTile,
} from '../model/tracks';
import { fitAll, type View } from '../model/view';
import type { Client, Window } from '../protocol/client';
import type { Summary } from '../protocol/types';
import { type Job, RequestQueue } from './request_queue';
import { type Placed, TileStore } from './tile_store';

const LANES_A_CHUNK = 16;
const SPAN_ROWS_A_CHUNK = 64;
const SAMPLE_ROWS_A_CHUNK = 16;
/** More slices than this in a lane of a tile come as bins. */
const EXACT_SLICES = 400;
const PARALLEL_REQUESTS = 4;
const PAUSE_MS = 25;

export interface Slot<T> {
  slot: TileId;
  placed: Placed<T> | null;
}

export class TracksStore {
  private readonly lanes: TileStore<LaneTile>;
  private readonly taskLanes: TileStore<LaneTile>;
  private readonly queues: TileStore<QueueTile>;
  private readonly spans: TileStore<SpanTile>;
  private readonly events: TileStore<EventTile>;
  private readonly samples: TileStore<SampleTile>;
  /** the row of samples of a lane */
  private readonly sampleRows: ReadonlyMap<number, number>;
  private readonly requests: RequestQueue;

  constructor(
    private readonly client: Client,
    private readonly run: string,
    private readonly summary: Summary,
    private readonly fields: () => Readonly<Record<string, string>>,
    onArrival: () => void,
    onError: (error: unknown) => void,
    onIdle: () => void,
  ) {
    this.requests = new RequestQueue(PARALLEL_REQUESTS, PAUSE_MS, onError, onIdle);
    const store = <T>(source: ConstructorParameters<typeof TileStore<T>>[0]) =>
      new TileStore<T>(source, onArrival);
    this.lanes = store({
      name: 'lanes',
      parse: laneTile,
      fetch: (chunk, window, signal) =>
        this.ask('lanes', { ...window, ...lanesOf(chunk, summary), exact: EXACT_SLICES }, signal),
    });
    this.taskLanes = store({
      name: 'task',
      parse: laneTile,
      fetch: (chunk, window, signal) => {
        const [task = '', first = ''] = chunk.split('/');
        const query = { ...window, ...lanesOf(first, summary), exact: EXACT_SLICES };
        return this.ask(`tasks/${encodeURIComponent(task)}/lanes`, query, signal);
      },
    });
    this.queues = store({
      name: 'queues',
      parse: queueTile,
      fetch: (_, window, signal) => this.ask('queues', { ...window }, signal),
    });
    this.spans = store({
      name: 'spans',
      parse: spanTile,
      fetch: (chunk, window, signal) => {
        const first = Number(chunk);
        const count = Math.min(SPAN_ROWS_A_CHUNK, summary.span_rows - first);
        return this.ask('spans', { ...window, first, count, exact: EXACT_SLICES }, signal);
      },
    });
    this.events = store({
      name: 'events',
      parse: eventTile,
      fetch: (chunk, window, signal) => {
        const [id = '', field] = splitOnce(chunk);
        const custom = summary.custom[Number(id)];
        const query = { ...window, type: custom?.type ?? '', exact: EXACT_SLICES };
        return this.ask('events', field === undefined ? query : { ...query, field }, signal);
      },
    });
    this.sampleRows = new Map(
      summary.samples.flatMap(({ lane, row }) => (lane === null ? [] : [[lane, row] as const])),
    );
    this.samples = store({
      name: 'samples',
      parse: sampleTile,
      fetch: (chunk, window, signal) => {
        const first = Number(chunk);
        const count = Math.min(SAMPLE_ROWS_A_CHUNK, summary.samples.length - first);
        return this.ask('samples', { ...window, first, count, exact: EXACT_SLICES }, signal);
      },
    });
  }

  laneSlots(row: Row, view: View, pixels: number): { slots: Slot<LaneTile>[]; at: number } {
    const slots = this.slots(this.lanes, laneChunk(row.id), view, pixels);
    return { slots, at: row.id % LANES_A_CHUNK };
  }
  taskSlots(task: string, row: Row, view: View, pixels: number): Slot<LaneTile>[] {
    return this.slots(this.taskLanes, `${task}/${laneChunk(row.id)}`, view, pixels);
  }
  queueSlots(view: View, pixels: number): Slot<QueueTile>[] {
    return this.slots(this.queues, '', view, pixels);
  }
  spanSlots(row: Row, view: View, pixels: number): { slots: Slot<SpanTile>[]; at: number } {
    const slots = this.slots(this.spans, spanChunk(row.id), view, pixels);
    return { slots, at: row.id % SPAN_ROWS_A_CHUNK };
  }
  eventSlots(row: Row, view: View, pixels: number): Slot<EventTile>[] {
    return this.slots(this.events, this.eventChunk(row), view, pixels);
  }
  /** The samples of a worker's or a thread's row; null where it has none. */
  sampleSlots(
    row: Row,
    view: View,
    pixels: number,
  ): { slots: Slot<SampleTile>[]; at: number } | null {
    const id = this.sampleRow(row);
    if (id === null) return null;
    const slots = this.slots(this.samples, sampleChunk(id), view, pixels);
    return { slots, at: id % SAMPLE_ROWS_A_CHUNK };
  }

  private sampleRow(row: Row): number | null {
    if (row.kind === 'threads') return row.id;
    return row.kind === 'workers' ? (this.sampleRows.get(row.id) ?? null) : null;
  }
  /** A custom type and the field that its tiles' values come from. */
  private eventChunk(row: Row): string {
    const field = valueField(this.summary.custom[row.id], this.fields())?.name;
    return field === undefined ? String(row.id) : `${row.id} ${field}`;
  }

  /** Asks for what these rows need in this view, and gives up what they don't. */
  want(rows: readonly Row[], view: View, pixels: number, task: string | null): void {
    const duration = this.summary.duration_ns;
    const level = levelFor(view, pixels);
    const whole = fitAll(duration);
    const top = levelFor(whole, pixels);
    const jobs = [
      ...this.jobs(rows, tilesIn(view, level, duration), task),
      ...this.jobs(rows, tilesIn(whole, top, duration), task),
      ...this.jobs(rows, neighbours(view, level, duration), task),
    ];
    const seen = new Set<string>();
    this.requests.want(jobs.filter((job) => !seen.has(job.key) && Boolean(seen.add(job.key))));
  }

  private jobs(rows: readonly Row[], ids: TileId[], task: string | null): Job[] {
    const chunks = {
      workers: new Set<string>(),
      spans: new Set<string>(),
      custom: new Set<string>(),
      samples: new Set<string>(),
    };
    let hasQueues = false;
    for (const row of rows) {
      const samples = this.sampleRow(row);
      if (samples !== null) chunks.samples.add(sampleChunk(samples));
      if (row.kind === 'workers') chunks.workers.add(laneChunk(row.id));
      else if (row.kind === 'spans') chunks.spans.add(spanChunk(row.id));
      else if (row.kind === 'custom') chunks.custom.add(this.eventChunk(row));
      else if (row.kind === 'queues') hasQueues = true;
    }
    const lanes = [...chunks.workers];
    return [
      ...this.lanes.jobs(lanes, ids),
      ...(task === null
        ? []
        : this.taskLanes.jobs(
            lanes.map((chunk) => `${task}/${chunk}`),
            ids,
          )),
      ...this.queues.jobs(hasQueues ? [''] : [], ids),
      ...this.spans.jobs([...chunks.spans], ids),
      ...this.events.jobs([...chunks.custom], ids),
      ...this.samples.jobs([...chunks.samples], ids),
    ];
  }

  private slots<T>(store: TileStore<T>, chunk: string, view: View, pixels: number): Slot<T>[] {
    const ids = tilesIn(view, levelFor(view, pixels), this.summary.duration_ns);
    return ids.map((slot) => ({ slot, placed: store.find(chunk, slot) }));
  }

  private ask(
    resource: string,
    query: Window & Record<string, string | number>,
    signal: AbortSignal,
  ) {
    return this.client.columns(this.run, resource, query, signal);
  }
}

const laneChunk = (lane: number) => String(lane - (lane % LANES_A_CHUNK));
const sampleChunk = (row: number) => String(row - (row % SAMPLE_ROWS_A_CHUNK));
const spanChunk = (row: number) => String(row - (row % SPAN_ROWS_A_CHUNK));

function splitOnce(text: string): [string, string?] {
  const at = text.indexOf(' ');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function lanesOf(chunk: string, summary: Summary) {
  const first = Number(chunk);
  return { first, count: Math.min(LANES_A_CHUNK, summary.workers.length - first) };
}
