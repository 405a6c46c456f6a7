// Draws all rows that are on screen, then what lies over them. Everything comes from the stores; a
// frame is drawn in one go and keeps nothing but the canvas.
// SPDX-License-Identifier: Apache-2.0
import { type Row, rowsIn, valueField } from '../model/layout';
import { binNs, tileStart } from '../model/tiles';
import { BINS_MODE } from '../model/tracks';
import { span, type View, xToTime } from '../model/view';
import type { TracksStore } from '../store/tracks_store';
import type { ViewerStore } from '../store/viewer_store';
import { axisMarks, drawGrid } from './axis';
import { drawCustom, type EventHit, hitEvent } from './custom';
import { background, type Box, type Frame } from './frame';
import { type BinHit, drawLane, drawTaskLayer, hitSlice, type LaneHit } from './lanes';
import {
  drawBounds,
  drawLoss,
  drawMark,
  drawMoments,
  drawPointerLine,
  drawRange,
  drawStalls,
} from './overlay';
import { drawQueue, valueAt } from './queues';
import { drawSamples, hitSample, type SampleHit, TICKS_PX } from './samples';
import { drawSpanRow, hitSpan, type SpanHit } from './spans';

const HIT_SLACK_PX = 3;

export interface Pointer {
  x: number;
  y: number;
}

/** `scroll`: CSS pixels that the rows are scrolled by; `pointer`: CSS pixels on the canvas. */
export function drawTimeline(
  frame: Frame,
  store: ViewerStore,
  tracks: TracksStore,
  scroll: number,
  pointer: Pointer | null,
): void {
  const { ctx, palette, ratio } = frame;
  ctx.fillStyle = palette.bg.css;
  ctx.fillRect(0, 0, frame.width, frame.height);
  drawGrid(frame, axisMarks(frame, store.clock));
  const rows = rowsIn(store.layout.value, scroll, scroll + frame.height / ratio);
  for (const row of rows) drawRow(frame, row, store, tracks, scroll);
  drawHeadings(frame, store, scroll);
  drawBounds(frame, store.durationNs);
  drawStalls(frame, store.summary.stalls);
  drawLoss(frame, store.summary.loss);
  const range = store.range.value;
  if (range) drawRange(frame, range);
  drawMoments(frame, store.moments.value);
  drawSelection(frame, rows, store, scroll);
  if (pointer) drawPointerLine(frame, pointer.x * ratio);
}

function boxOf(frame: Frame, row: Row, scroll: number) {
  const top = Math.round((row.top - scroll) * frame.ratio);
  const bottom = Math.round((row.top + row.height - scroll) * frame.ratio);
  return { top, height: bottom - top - 1, isAlternate: row.id % 2 === 1 };
}

function drawRow(
  frame: Frame,
  row: Row,
  store: ViewerStore,
  tracks: TracksStore,
  scroll: number,
): void {
  const box = boxOf(frame, row, scroll);
  const { view, width } = frame;
  const task = store.task.value;
  const selection = store.selection.value;
  if (row.kind === 'threads') background(frame, box);
  else if (row.kind === 'workers') {
    const { slots, at } = tracks.laneSlots(row, view, width);
    drawLane(frame, box, slots, at, task !== null);
    if (task !== null) drawTaskLayer(frame, box, tracks.taskSlots(task, row, view, width), at);
  } else if (row.kind === 'queues') {
    drawQueue(frame, box, tracks.queueSlots(view, width), row.id, valueUnit(store, row));
  } else if (row.kind === 'spans') {
    const { slots, at } = tracks.spanSlots(row, view, width);
    drawSpanRow(frame, box, slots, at, selection?.what === 'spans' ? selection.index : null);
  } else {
    const selected = selection?.what === 'events' ? selection.index : null;
    drawCustom(frame, box, tracks.eventSlots(row, view, width), valueUnit(store, row), selected);
  }
  drawSampleTicks(frame, row, box, store, tracks);
}

/** The unit of the values that a row shows, as the trace writes it; null: a plain number. */
export function valueUnit(store: ViewerStore, row: Row): string | null {
  const { queues, custom } = store.summary;
  if (row.kind === 'queues') {
    return queues.find((queue) => queue.series === row.id)?.kind === 'bytes' ? 'bytes' : null;
  }
  if (row.kind !== 'custom') return null;
  return valueField(custom[row.id], store.choices.value.fields)?.unit ?? null;
}

function drawSampleTicks(
  frame: Frame,
  row: Row,
  box: Box,
  store: ViewerStore,
  tracks: TracksStore,
): void {
  const samples = tracks.sampleSlots(row, frame.view, frame.width);
  if (!samples) return;
  const selection = store.selection.value;
  const selected = selection?.what === 'samples' ? selection.index : null;
  const height = row.kind === 'threads' ? box.height : TICKS_PX * frame.ratio;
  const place = { ...box, top: box.top + box.height - height, height };
  drawSamples(frame, place, samples.slots, samples.at, selected);
}

function drawHeadings(frame: Frame, store: ViewerStore, scroll: number): void {
  frame.ctx.fillStyle = frame.palette.raised.css;
  for (const group of store.layout.value.groups) {
    const top = (group.top - scroll) * frame.ratio;
    frame.ctx.fillRect(0, top, frame.width, 22 * frame.ratio);
  }
}

function drawSelection(frame: Frame, rows: Row[], store: ViewerStore, scroll: number): void {
  const mark = store.mark.value;
  for (const row of rows) {
    if (row.kind !== 'workers') continue;
    const box = boxOf(frame, row, scroll);
    if (mark && mark.lane === row.id) drawMark(frame, mark.start, mark.end, box.top, box.height);
  }
  if (mark && mark.lane === null) drawMark(frame, mark.start, mark.end, 0, frame.height);
}

export type Hit =
  | { row: Row; at: number; slice: LaneHit }
  | { row: Row; at: number; bin: BinHit }
  | { row: Row; at: number; span: SpanHit }
  | { row: Row; at: number; event: EventHit }
  | { row: Row; at: number; sample: SampleHit }
  | { row: Row; at: number; queue: NonNullable<ReturnType<typeof valueAt>> }
  | { row: Row; at: number };

/** The event, sample or span that is nearest to the middle: the keyboard has no pointer. */
export function hitNearest(
  store: ViewerStore,
  tracks: TracksStore,
  row: Row,
  pixels: number,
): Hit | null {
  const view = store.view.value;
  const at = view.start + span(view) / 2;
  const slack = span(view) / 2;
  if (row.kind === 'custom') {
    const event = hitEvent(tracks.eventSlots(row, view, pixels), at, slack);
    return event && { row, at: event.at, event };
  }
  if (row.kind === 'spans') {
    for (let near = slack / 512; near <= slack; near *= 2) {
      const span = hitSpanAt(tracks, row, view, pixels, at, near);
      if (span) return { row, at, span };
    }
  }
  if (row.kind !== 'threads') return null;
  const samples = tracks.sampleSlots(row, view, pixels);
  const sample = samples && hitSample(samples.slots, samples.at, at, slack);
  return sample ? { row, at: sample.at, sample } : null;
}

/** What lies at a point of the canvas (CSS pixels); `pixels`: its width in device pixels. */
export function hitTest(
  store: ViewerStore,
  tracks: TracksStore,
  row: Row,
  x: number,
  widthCss: number,
  pixels: number,
): Hit {
  const view = store.view.value;
  const at = xToTime(view, widthCss, x);
  const slack = (span(view) / widthCss) * HIT_SLACK_PX;
  if (row.kind === 'workers') return hitLane(store, tracks, row, at, slack, pixels);
  if (row.kind === 'queues') {
    const queue = valueAt(tracks.queueSlots(view, pixels), row.id, at);
    return queue ? { row, at, queue } : { row, at };
  }
  if (row.kind === 'custom') {
    const event = hitEvent(tracks.eventSlots(row, view, pixels), at, slack * 2);
    return event ? { row, at, event } : { row, at };
  }
  if (row.kind === 'threads') return { row, at };
  const found = hitSpanAt(tracks, row, view, pixels, at, slack);
  return found ? { row, at, span: found } : { row, at };
}

function hitSpanAt(
  tracks: TracksStore,
  row: Row,
  view: View,
  pixels: number,
  at: number,
  slackNs: number,
): SpanHit | null {
  const { slots, at: index } = tracks.spanSlots(row, view, pixels);
  for (const { placed } of slots) {
    const found = placed ? hitSpan(placed.tile, index, at, slackNs) : null;
    if (found) return found;
  }
  return null;
}

/** The sample at a point of a row's ticks, or null. */
export function hitSamples(
  store: ViewerStore,
  tracks: TracksStore,
  row: Row,
  x: number,
  widthCss: number,
  pixels: number,
): Hit | null {
  const view = store.view.value;
  const at = xToTime(view, widthCss, x);
  const samples = tracks.sampleSlots(row, view, pixels);
  const slack = (span(view) / widthCss) * HIT_SLACK_PX;
  const sample = samples ? hitSample(samples.slots, samples.at, at, slack) : null;
  return sample ? { row, at, sample } : null;
}

function hitLane(
  store: ViewerStore,
  tracks: TracksStore,
  row: Row,
  at: number,
  slack: number,
  pixels: number,
): Hit {
  const { slots, at: index } = tracks.laneSlots(row, store.view.value, pixels);
  let bin: BinHit | null = null;
  for (const { placed } of slots) {
    if (!placed) continue;
    const slice = hitSlice(placed.tile, index, at, slack);
    if (slice) return { row, at, slice };
    const { tile, id } = placed;
    if (tile.mode[index] !== BINS_MODE) continue;
    const width = binNs(id.level);
    const wanted = Math.floor((at - tileStart(id)) / width);
    for (let i = tile.brows[index] ?? 0; i < (tile.brows[index + 1] ?? 0); i += 1) {
      if (Math.abs((tile.bin[i] ?? 0) - wanted) > 1) continue;
      const maxdur = tile.maxdur[i] ?? 0;
      if (bin && maxdur <= bin.maxdur) continue;
      const start = tileStart(id) + (tile.bin[i] ?? 0) * width;
      const [polls, share] = [tile.n[i] ?? 0, tile.poll[i] ?? 0];
      bin = { polls, share, maxdur, maxidx: tile.maxidx[i] ?? 0, start, dur: width };
    }
  }
  return bin ? { row, at, bin } : { row, at };
}
