// The viewer of one run: puts the parts together, draws once a frame when something has changed,
// asks for the tiles that the view needs, and keeps the URL in step.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import type { Signal } from '../base/signal';
import { formatUrl, parseUrl } from '../model/url_state';
import { pan } from '../model/view';
import { isAbort } from '../protocol/client';
import { axisMarks, drawAxis } from '../render/axis';
import { type Minimap, minimapOf } from '../render/minimap';
import { type Palette, readPalette } from '../render/palette';
import type { Theme } from '../store/theme';
import { TracksStore } from '../store/tracks_store';
import type { ViewerStore } from '../store/viewer_store';
import { legend, topBar, warningStrips } from '../ui/chrome';
import { helpDialog } from '../ui/help';
import { listenToKeys } from '../ui/keys';
import { listenToPointer } from '../ui/pointer';
import { searchBox } from '../ui/search';
import { FlamePanel } from './flame_panel';
import { MinimapStrip } from './minimap_strip';
import { sidePanel } from './side_panel';
import { Surface } from './surface';
import { TimelineView } from './timeline_view';
import { viewerActions } from './viewer_keys';

const AXIS_PX = 30;
const URL_PAUSE_MS = 200;
const MINIMAP_BINS = 1200;
const DAY_AND_ZONE = 'UTC';

/** Shows the viewer; returns how to leave it. */
export function showViewer(
  root: HTMLElement,
  store: ViewerStore,
  theme: Signal<Theme>,
): () => void {
  const page = new ViewerPage(root, store, theme);
  return () => page.leave();
}

class ViewerPage {
  private readonly controller = new AbortController();
  private readonly tracks: TracksStore;
  private readonly timeline: TimelineView;
  private readonly minimap: MinimapStrip;
  private readonly flame: FlamePanel;
  private readonly axis: Surface;
  private readonly stopWatching: (() => void)[] = [];
  private palette: Palette;
  private minimapData: Minimap | null = null;
  private isFramePending = false;
  private urlTimer = 0;

  constructor(
    root: HTMLElement,
    private readonly store: ViewerStore,
    theme: Signal<Theme>,
  ) {
    const { signal } = this.controller;
    this.palette = readPalette(document.documentElement);
    this.tracks = new TracksStore(
      store.client,
      store.run,
      store.summary,
      () => store.choices.value.fields,
      () => this.redraw(),
      (error) => store.problem.set(error instanceof Error ? error.message : String(error)),
      () => this.timeline.element.setAttribute('aria-busy', 'false'),
    );
    this.timeline = new TimelineView(store, this.tracks, () => this.redraw(), signal);
    this.minimap = new MinimapStrip(store, signal);
    this.flame = new FlamePanel(store, () => this.redraw(), signal);
    this.axis = new Surface(
      h('canvas', { class: 'axis', role: 'img', 'aria-label': `time axis, ${this.zone()}` }),
    );
    this.listenToAxis(signal);
    this.build(root, theme);
    store.fromUrl(parseUrl(location.hash));
    this.watch(theme);
    this.ask(signal);
    window.addEventListener('hashchange', () => this.followUrl(), { signal });
  }

  leave(): void {
    this.controller.abort();
    window.clearTimeout(this.urlTimer);
    for (const stop of this.stopWatching) stop();
  }

  private zone(): string {
    return this.store.clock.isKnown ? DAY_AND_ZONE : 'since the start';
  }

  private build(root: HTMLElement, theme: Signal<Theme>): void {
    const { store, timeline } = this;
    document.title = `dial9: ${store.summary.name}`;
    const help = helpDialog();
    const search = searchBox(store);
    const showHelp = () => help.showModal();
    const bar = topBar(store, theme, search.element, {
      zoomIn: () => timeline.zoomAt(1 / 1.6, timeline.widthCss / 2),
      zoomOut: () => timeline.zoomAt(1.6, timeline.widthCss / 2),
      help: showHelp,
    });
    const head = h(
      'div',
      { class: 'head' },
      h('div', { class: 'label' }, 'Whole trace'),
      this.minimap.element,
      h('div', { class: 'label' }, this.zone()),
      this.axis.canvas,
    );
    const parts = [head, timeline.element, this.flame.element, legend(store)];
    const left = h('div', { class: 'timeline' }, ...parts);
    replaceChildren(
      root,
      bar,
      ...warningStrips(store.summary),
      h('main', { class: 'work' }, left, sidePanel(store)),
      help,
      timeline.tooltip.element,
      this.flame.tooltip.element,
    );
    const targets = { search: search.focus, help: showHelp };
    listenToKeys(viewerActions(store, timeline, targets), this.controller.signal);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(timeline.element);
    this.controller.signal.addEventListener('abort', () => observer.disconnect());
    this.resize();
    timeline.scrollTo(store.scroll.value);
  }

  private watch(theme: Signal<Theme>): void {
    const { store, stopWatching } = this;
    const changed = () => {
      this.want();
      this.redraw();
      this.writeUrlSoon();
    };
    const labels = () => {
      this.timeline.drawLabels();
      changed();
    };
    stopWatching.push(
      store.view.watch(changed),
      store.task.watch(changed),
      store.taskLife.watch(() => this.redraw()),
      store.selection.watch(changed),
      store.spot.watch(() => this.writeUrlSoon()),
      store.mark.watch(() => this.redraw()),
      store.range.watch(changed),
      store.finding.watch(changed),
      store.panel.watch(() => this.writeUrlSoon()),
      store.moments.watch(() => this.redraw()),
      store.flame.watch(() => this.writeUrlSoon()),
      store.layout.watch(labels),
      store.scroll.watch(changed),
      store.focusRow.watch((row) => {
        if (row !== null) this.timeline.reveal(row);
        labels();
      }),
      theme.watch(() => {
        this.palette = readPalette(document.documentElement);
        this.redraw();
      }),
    );
  }

  private ask(signal: AbortSignal): void {
    const { store } = this;
    const failed = (error: unknown) => {
      if (!isAbort(error))
        store.problem.set(error instanceof Error ? error.message : String(error));
    };
    store.client.findings(store.run, signal).then((found) => store.findings.set(found), failed);
    const bins = { bins: MINIMAP_BINS };
    store.client.columns(store.run, 'minimap', bins, signal).then((columns) => {
      this.minimapData = minimapOf(columns);
      this.redraw();
    }, failed);
  }

  private listenToAxis(signal: AbortSignal): void {
    const { store } = this;
    const ignore = () => undefined;
    listenToPointer(
      this.axis.canvas,
      {
        zoom: (factor, x) => this.timeline.zoomAt(factor, x),
        pan: (dx) =>
          store.view.set(pan(store.view.value, -dx / this.axis.widthCss, store.durationNs)),
        scroll: ignore,
        measure: ignore,
        hover: ignore,
        leave: ignore,
        choose: ignore,
        open: () => store.fit(),
      },
      signal,
    );
  }

  private resize(): void {
    this.timeline.resize();
    this.minimap.resize(this.timeline.widthCss);
    this.axis.resize(this.timeline.widthCss, AXIS_PX);
    this.timeline.drawLabels();
    this.want();
    this.redraw();
  }

  private want(): void {
    const { view, task } = this.store;
    this.timeline.element.setAttribute('aria-busy', 'true');
    this.tracks.want(this.timeline.visibleRows(), view.value, this.timeline.pixels, task.value);
  }

  private redraw(): void {
    if (this.isFramePending) return;
    this.isFramePending = true;
    requestAnimationFrame(() => {
      this.isFramePending = false;
      if (this.controller.signal.aborted) return;
      this.timeline.draw(this.palette);
      this.minimap.draw(this.palette, this.minimapData);
      this.flame.draw(this.palette);
      const frame = this.axis.frame(this.store.view.value, this.palette);
      drawAxis(frame, axisMarks(frame, this.store.clock));
    });
  }

  private writeUrlSoon(): void {
    window.clearTimeout(this.urlTimer);
    this.urlTimer = window.setTimeout(() => {
      history.replaceState(null, '', formatUrl(this.store.toUrl()) || '#');
    }, URL_PAUSE_MS);
  }

  /** The user has changed the address, or gone back: follow it. */
  private followUrl(): void {
    const state = parseUrl(location.hash);
    if (state.run !== this.store.run) return;
    this.store.fromUrl(state);
    this.timeline.scrollTo(state.scroll ?? 0);
  }
}
