// The rows of the timeline on the page: canvas, labels, scrolling, hover and clicks. Draws at
// most once a frame of the screen, and only when something has changed.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { type Row, rowAt, rowBeside, type RowName, rowOfName, rowsIn } from '../model/layout';
import { pan, span, xToTime, zoom } from '../model/view';
import type { Palette } from '../render/palette';
import { TICKS_PX } from '../render/samples';
import {
  drawTimeline,
  type Hit,
  hitNearest,
  hitSamples,
  hitTest,
  type Pointer,
  valueUnit,
} from '../render/timeline';
import type { TracksStore } from '../store/tracks_store';
import type { ViewerStore } from '../store/viewer_store';
import { momentText } from '../ui/facts';
import { hoverText, lossLines, stallLines } from '../ui/hover_text';
import { drawLabels } from '../ui/labels';
import { listenToPointer } from '../ui/pointer';
import { Tooltip, type TooltipText } from '../ui/tooltip';
import { Surface } from './surface';

export class TimelineView {
  readonly element: HTMLElement;
  readonly tooltip = new Tooltip();
  private readonly canvas = h('canvas', {
    role: 'img',
    'aria-label': 'timeline: lanes of workers, queues, events and spans; press ? for the keys',
  });
  private readonly labels = h('div', { class: 'labels' });
  /** tells a screen reader on which row the keyboard stands */
  private readonly said = h('div', { class: 'visually-hidden', role: 'status' });
  private readonly content: HTMLElement;
  private readonly surface: Surface;
  private pointer: Pointer | null = null;

  constructor(
    private readonly store: ViewerStore,
    private readonly tracks: TracksStore,
    private readonly redraw: () => void,
    signal: AbortSignal,
  ) {
    this.surface = new Surface(this.canvas);
    const viewport = h('div', { class: 'viewport' }, this.canvas);
    this.content = h('div', { class: 'content' }, this.labels, viewport);
    this.element = h(
      'div',
      { class: 'rows', tabindex: 0, role: 'region', 'aria-label': 'timeline rows' },
      this.content,
      this.said,
    );
    this.element.addEventListener('scroll', () => this.scrolled(), { signal });
    store.layout.watch((layout) => {
      this.content.style.height = `${layout.height}px`;
      redraw();
    });
    store.view.watch(() => this.tooltip.hide());
    this.listen(signal);
  }

  get pixels(): number {
    return this.surface.pixels;
  }
  get widthCss(): number {
    return this.surface.widthCss;
  }

  resize(): void {
    const { clientWidth, clientHeight } = this.element;
    const room = clientWidth - this.labels.offsetWidth;
    this.surface.resize(Math.max(room, 50), Math.max(clientHeight, 20));
  }

  visibleRows(): Row[] {
    const top = this.element.scrollTop;
    return rowsIn(this.store.layout.value, top, top + this.surface.heightCss);
  }

  draw(palette: Palette): void {
    const frame = this.surface.frame(this.store.view.value, palette);
    drawTimeline(frame, this.store, this.tracks, this.element.scrollTop, this.pointer);
  }

  /** Draws the labels anew: when rows, scrolling or the focused lane have changed. */
  drawLabels(): void {
    const top = this.element.scrollTop;
    drawLabels(this.store, this.labels, top, top + this.surface.heightCss);
  }

  /** Scrolls so that a row is in sight, and says which it is. */
  reveal(name: RowName): void {
    if (name.kind === 'workers') this.store.layOutLane(name.id);
    const row = rowOfName(this.store.layout.value, name);
    if (!row) return;
    this.tooltip.hide();
    this.said.textContent = row.title;
    const top = this.element.scrollTop;
    const bottom = top + this.element.clientHeight;
    if (row.top < top) this.element.scrollTop = Math.max(row.top - 30, 0);
    else if (row.top + row.height > bottom) {
      this.element.scrollTop = row.top + row.height - this.element.clientHeight + 10;
    }
  }

  scrollTo(y: number): void {
    this.element.scrollTop = y;
  }

  /** Zooms around the pointer where it is over the rows, else around the middle. */
  zoomAtPointer(factor: number): void {
    this.zoomAt(factor, this.pointer?.x ?? this.surface.widthCss / 2);
  }

  zoomAt(factor: number, x: number): void {
    const { view } = this.store;
    const at = xToTime(view.value, this.surface.widthCss, x);
    view.set(zoom(view.value, factor, at, this.store.durationNs));
  }

  /**
   * Selects what is at the middle of the row that the keyboard stands on, of events and samples the
   * nearest; what can't be selected (a queue's value, an idle worker) is told beside it.
   */
  selectAtMiddle(): void {
    const { store, tracks } = this;
    const layout = store.layout.value;
    const beside = store.focusRow.value ? null : rowBeside(layout, null, 1);
    const first = beside && 'row' in beside ? beside.row : null;
    const row = store.focusRow.value ? rowOfName(layout, store.focusRow.value) : first;
    if (!row) return;
    const { widthCss, pixels } = this.surface;
    const hit =
      hitNearest(store, tracks, row, pixels) ??
      hitTest(store, tracks, row, widthCss / 2, widthCss, pixels);
    this.tooltip.hide();
    if (this.select(hit)) return;
    const name = row.label || row.title;
    const nothing = { title: 'Nothing at the middle of the screen', lines: [name] };
    const text = this.textAt(hit) ?? nothing;
    const { left, top } = this.canvas.getBoundingClientRect();
    const y = top + row.top - this.element.scrollTop;
    this.tooltip.show(text, left + widthCss / 2, y);
    this.said.textContent = [text.title, ...text.lines].join(', ');
  }

  /** Selects what was hit; false where there is nothing to select. */
  select(hit: Hit | null): boolean {
    if (!hit) return false;
    const { store } = this;
    const lane = hit.row.kind === 'workers' ? hit.row.id : null;
    store.focusRow.set({ kind: hit.row.kind, id: hit.row.id });
    if ('slice' in hit) {
      const { start, dur, index, task } = hit.slice;
      const mark = { lane, start, end: start + dur };
      if (index === null) store.selectSpot(hit.row.id, start + dur / 2, mark);
      else store.select({ what: 'polls', index }, mark);
      if (store.task.value !== null && task !== null) {
        store.selectTask(task);
        store.panel.set('details');
      }
      return true;
    }
    if ('bin' in hit && hit.bin.maxidx !== 0xffffffff) {
      store.select({ what: 'polls', index: hit.bin.maxidx }, null);
      return true;
    }
    if ('sample' in hit) store.select({ what: 'samples', index: hit.sample.index }, null);
    else if ('span' in hit) store.select({ what: 'spans', index: hit.span.index }, null);
    else if ('event' in hit) store.select({ what: 'events', index: hit.event.index }, null);
    else return false;
    return true;
  }

  private listen(signal: AbortSignal): void {
    const { store } = this;
    listenToPointer(
      this.canvas,
      {
        zoom: (factor, x) => this.zoomAt(factor, x),
        pan: (dx) => {
          const share = -dx / this.surface.widthCss;
          store.view.set(pan(store.view.value, share, store.durationNs));
        },
        scroll: (dy) => (this.element.scrollTop += dy),
        measure: (from, to) => {
          const time = (x: number) => xToTime(store.view.value, this.surface.widthCss, x);
          store.range.set([time(from), time(to)]);
          store.panel.set('details');
        },
        hover: (x, y, event) => this.hover(x, y, event),
        leave: () => {
          this.pointer = null;
          this.tooltip.hide();
          this.redraw();
        },
        choose: (x, y) => {
          this.element.focus({ preventScroll: true });
          if (!this.select(this.hitAt(x, y))) store.select(null, null);
        },
        open: (x, y) => this.open(this.hitAt(x, y)),
      },
      signal,
    );
  }

  private hitAt(x: number, y: number): Hit | null {
    const top = y + this.element.scrollTop;
    const row = rowAt(this.store.layout.value, top);
    if (!row) return null;
    const { widthCss, pixels } = this.surface;
    const isAtTicks = row.kind === 'threads' || top > row.top + row.height - TICKS_PX - 1;
    const sample = isAtTicks ? hitSamples(this.store, this.tracks, row, x, widthCss, pixels) : null;
    return sample ?? hitTest(this.store, this.tracks, row, x, widthCss, pixels);
  }

  /** What the box beside the pointer says; over lost events and stalls also which. */
  private textAt(hit: Hit): TooltipText | null {
    const { summary, view } = this.store;
    const when = momentText(this.store, hit.at);
    const slack = (span(view.value) / this.surface.widthCss) * 4;
    const lost = lossLines(summary.loss, hit.at, slack);
    const stalled = stallLines(summary.stalls, hit.at, slack);
    const unit = valueUnit(this.store, hit.row);
    const text = hoverText(hit, hit.row.label || hit.row.title, when, unit);
    if (lost.length + stalled.length === 0) return text;
    const title = text?.title ?? (lost.length > 0 ? 'Events lost' : 'The platform stalled');
    return { title, lines: [...(text?.lines ?? [when]), ...lost, ...stalled] };
  }

  private hover(x: number, y: number, event: PointerEvent): void {
    this.pointer = { x, y };
    this.redraw();
    const hit = this.hitAt(x, y);
    const text = hit ? this.textAt(hit) : null;
    if (text) this.tooltip.show(text, event.clientX, event.clientY);
    else this.tooltip.hide();
  }

  private open(hit: Hit | null): void {
    if (!hit) return;
    if ('slice' in hit) this.store.show(hit.slice.start, hit.slice.start + hit.slice.dur);
    else if ('span' in hit) this.store.show(hit.span.start, hit.span.start + hit.span.dur);
    else if ('bin' in hit) this.store.show(hit.bin.start, hit.bin.start + hit.bin.dur);
    else this.zoomAtPointer(0.25);
  }

  private scrolled(): void {
    this.store.scroll.set(this.element.scrollTop);
    this.tooltip.hide();
    this.drawLabels();
    this.redraw();
  }
}
