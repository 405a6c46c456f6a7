// The flame graph below the timeline: what the CPU time of a stretch, worker, task, span or label
// went into, as icicle or table. Asks the server when its choice changes; from a frame one goes to
// its moments on the timeline.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { plural } from '../base/format';
import {
  type FlameBox,
  flameBoxes,
  flameMatches,
  flameName,
  flamePercent,
  type FlameTree,
  flameTree,
  flameWeight,
} from '../model/flame';
import { isAbort, type Query } from '../protocol/client';
import { drawFlame, FLAME_ROW_PX, hitFlame } from '../render/flame';
import type { Palette } from '../render/palette';
import type { ViewerStore } from '../store/viewer_store';
import { flameControls } from '../ui/flame_controls';
import { flameSteps } from '../ui/flame_steps';
import { flameTable } from '../ui/flame_table';
import { Tooltip } from '../ui/tooltip';
import { Surface } from './surface';

const ASK_PAUSE_MS = 250;
const LEAST_PX = 0.4;
const FEW_SAMPLES = 20;

export class FlamePanel {
  readonly element: HTMLElement;
  readonly tooltip = new Tooltip();
  private readonly canvas = h('canvas', {
    tabindex: 0,
    role: 'img',
    'aria-label': 'flame graph: arrows choose a frame, Enter zooms to it, Space shows its moments',
  });
  private readonly surface = new Surface(this.canvas);
  private readonly content = h('div', { class: 'flame-content' }, this.canvas);
  private readonly scroller = h('div', { class: 'flame-rows' }, this.content);
  private readonly table = h('div', {
    class: 'flame-table',
    tabindex: 0,
    role: 'region',
    'aria-label': 'functions',
  });
  private readonly notes = h('div', { class: 'flame-notes soft' });
  private readonly chosen = h('div', { class: 'flame-chosen', 'aria-live': 'polite' });
  private readonly empty = h('div', { class: 'center hidden' });
  private readonly found = h('span', { class: 'soft', role: 'status' });
  private tree: FlameTree | null = null;
  private boxes: FlameBox[] = [];
  private focus = 0;
  private selected: number | null = null;
  private hovered: number | null = null;
  /** of the tree that is shown; and what was last asked for */
  private query: Query = {};
  private wanted = '';
  private asking = new AbortController();
  private timer = 0;

  constructor(
    private readonly store: ViewerStore,
    private readonly redraw: () => void,
    signal: AbortSignal,
  ) {
    const controls = flameControls(store, this.found);
    this.element = h(
      'section',
      { class: 'flame hidden', 'aria-label': 'flame graph' },
      controls,
      this.notes,
      this.chosen,
      this.empty,
      this.scroller,
      this.table,
    );
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.scroller);
    signal.addEventListener('abort', () => {
      observer.disconnect();
      this.asking.abort();
      window.clearTimeout(this.timer);
    });
    const ask = () => this.askSoon();
    store.flame.watch(() => this.changed());
    store.view.watch(ask);
    store.range.watch(ask);
    this.listen(signal);
  }

  draw(palette: Palette): void {
    if (!this.tree || this.store.flame.value?.shows !== 'icicle') return;
    const frame = this.surface.frame(this.store.view.value, palette);
    const picture = { ...frame, scroll: this.scroller.scrollTop };
    drawFlame(picture, this.tree, this.boxes, {
      matches: flameMatches(this.tree, this.store.flame.value.search),
      selected: this.selected,
      hovered: this.hovered,
    });
  }

  private changed(): void {
    const choice = this.store.flame.value;
    this.element.classList.toggle('hidden', choice === null);
    if (!choice) return this.tooltip.hide();
    this.showParts();
    this.showFound();
    this.showTable();
    this.askSoon();
    this.redraw();
  }

  /** What the server is asked for. */
  private makeQuery(): Query {
    const { store } = this;
    const choice = store.flame.value;
    const query: Query = {};
    const stretch = store.flameStretch();
    if (stretch) [query['from'], query['to']] = stretch;
    if (choice && choice.worker !== null) query['worker'] = choice.worker;
    if (choice && choice.task !== null) query['task'] = choice.task;
    if (choice && choice.span !== null) query['span'] = choice.span;
    if (choice && choice.label.trim() !== '') query['label'] = choice.label.trim();
    if (choice?.inverted) query['inverted'] = 1;
    return query;
  }

  private askSoon(): void {
    if (!this.store.flame.value) return;
    const query = this.makeQuery();
    const wanted = JSON.stringify(query);
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    this.asking.abort();
    window.clearTimeout(this.timer);
    this.element.setAttribute('aria-busy', 'true');
    this.timer = window.setTimeout(() => this.ask(query), ASK_PAUSE_MS);
  }

  private ask(query: Query): void {
    this.asking = new AbortController();
    this.store.client.flame(this.store.run, query, this.asking.signal).then(
      (reply) => {
        this.tree = flameTree(reply);
        this.query = query;
        this.focus = 0;
        this.choose(null);
        this.showNotes();
        this.showFound();
        this.showTable();
        this.layOut();
        this.element.setAttribute('aria-busy', 'false');
      },
      (error: unknown) => {
        if (isAbort(error)) return;
        const text = error instanceof Error ? error.message : String(error);
        this.tree = null;
        this.wanted = '';
        this.choose(null);
        this.showFound();
        replaceChildren(this.notes, h('div', { role: 'alert' }, text));
        this.showParts();
        this.element.setAttribute('aria-busy', 'false');
      },
    );
  }

  /** The icicle or the table; where there is nothing, why, and what to do. */
  private showParts(): void {
    const shows = this.store.flame.value?.shows;
    const reply = this.tree?.reply;
    const isEmpty = !reply || reply.count === 0;
    this.scroller.classList.toggle('hidden', isEmpty || shows !== 'icicle');
    this.table.classList.toggle('hidden', isEmpty || shows !== 'table');
    this.empty.classList.toggle('hidden', !isEmpty);
    if (!isEmpty) return;
    const why = (reply?.notes ?? []).map((note) => h('p', {}, note));
    replaceChildren(this.empty, reply ? h('h3', {}, 'Nothing to show') : null, ...why);
  }

  private showNotes(): void {
    const reply = this.tree?.reply;
    if (!reply) return;
    this.showParts();
    const count = plural(reply.count, reply.counts);
    const what = `${reply.title}: ${flameWeight(reply, reply.total)} in ${count}`;
    const lacking = reply.nodes_left_out;
    const isRough = reply.count > 0 && reply.count < FEW_SAMPLES;
    const notes = reply.count === 0 ? [] : reply.notes;
    replaceChildren(
      this.notes,
      h('b', {}, what),
      isRough ? h('span', {}, 'so few that shares are rough') : null,
      ...notes.map((note) => h('span', {}, note)),
      lacking > 0 ? h('span', {}, `the ${plural(lacking, 'lightest frame')} left out`) : null,
    );
  }

  private showFound(): void {
    const tree = this.tree;
    const found = tree && flameMatches(tree, this.store.flame.value?.search ?? '');
    this.found.textContent =
      found && tree
        ? `${flamePercent(tree.reply, found.weight)} in ${plural(found.functions.size, 'function')}`
        : '';
  }

  private showTable(): void {
    const choice = this.store.flame.value;
    if (!this.tree || choice?.shows !== 'table') return;
    replaceChildren(
      this.table,
      flameTable(this.tree, choice.search, (name) =>
        this.store.showFlame({ search: name, shows: 'icicle' }),
      ),
    );
  }

  private layOut(): void {
    const tree = this.tree;
    if (!tree) return;
    this.boxes = flameBoxes(tree, this.focus, LEAST_PX / Math.max(this.surface.widthCss, 1));
    const deepest = this.boxes.reduce((most, box) => Math.max(most, box.depth), 0);
    this.content.style.height = `${(deepest + 1) * FLAME_ROW_PX}px`;
    this.redraw();
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.scroller;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.surface.resize(clientWidth, clientHeight);
    this.layOut();
  }

  private zoomTo(node: number): void {
    this.focus = node;
    this.layOut();
    this.scroller.scrollTop = Math.max(((this.tree?.depth[node] ?? 0) - 2) * FLAME_ROW_PX, 0);
  }

  /** Selects a frame and says what it is. */
  private choose(node: number | null): void {
    this.selected = node;
    if (this.store.moments.value.length > 0) this.store.moments.set([]);
    const tree = this.tree;
    if (node === null || !tree) this.chosen.replaceChildren();
    else {
      const entry = tree.reply.nodes[node];
      const click = () => this.showMoments(node);
      const show = h('button', { on: { click } }, 'Its moments on the timeline');
      const itself = this.sum(tree, entry?.self ?? 0);
      const text = `${this.sum(tree, entry?.total ?? 0)} (itself ${itself})`;
      const name = flameName(tree.reply, node);
      replaceChildren(
        this.chosen,
        h('code', { class: 'ellipsis', title: name }, name),
        h('span', { class: 'soft' }, text),
        show,
      );
    }
    this.redraw();
  }

  private sum(tree: FlameTree, weight: number): string {
    return `${flameWeight(tree.reply, weight)}, ${flamePercent(tree.reply, weight)}`;
  }

  private showMoments(node: number): void {
    const { store, query } = this;
    store.client.flameMoments(store.run, query, node).then(
      (found) => {
        if (this.selected !== node || this.query !== query) return;
        // Going to moments moves the view; the tree stays what it was of.
        const stretch = store.flameStretch();
        if (store.flameScope() === 'screen') store.showFlame({ scope: 'stretch', stretch });
        store.moments.set(found.moments);
        this.chosen.lastChild?.replaceWith(flameSteps(store, found));
      },
      (error: unknown) => store.problem.set(error instanceof Error ? error.message : String(error)),
    );
  }

  private listen(signal: AbortSignal): void {
    const at = (event: MouseEvent) => {
      const bounds = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
      return hitFlame(this.boxes, this.surface.widthCss, this.scroller.scrollTop, x, y);
    };
    this.scroller.addEventListener('scroll', () => this.redraw(), { signal });
    const { canvas } = this;
    canvas.addEventListener('pointermove', (event) => this.hover(at(event), event), { signal });
    canvas.addEventListener('pointerleave', (event) => this.hover(null, event), { signal });
    canvas.addEventListener('click', (event) => this.choose(at(event)?.node ?? null), { signal });
    canvas.addEventListener('dblclick', (event) => this.zoomTo(at(event)?.node ?? 0), { signal });
    canvas.addEventListener('keydown', (event) => this.key(event), { signal });
  }

  private hover(box: FlameBox | null, event: MouseEvent): void {
    this.hovered = box?.node ?? null;
    const tree = this.tree;
    const entry = box && tree ? tree.reply.nodes[box.node] : undefined;
    if (!box || !tree || !entry) this.tooltip.hide();
    else {
      const of = entry.function === null ? undefined : tree.reply.functions[entry.function];
      const lines = [
        `total ${this.sum(tree, entry.total)}`,
        `itself ${this.sum(tree, entry.self)}`,
      ];
      if (entry.left_out > 0) lines.push(`left out below ${this.sum(tree, entry.left_out)}`);
      if (of && of.module !== '') lines.push(of.module);
      const title = flameName(tree.reply, box.node);
      this.tooltip.show({ title, lines }, event.clientX, event.clientY);
    }
    this.redraw();
  }

  private key(event: KeyboardEvent): void {
    const tree = this.tree;
    if (!tree) return;
    const node = this.selected ?? this.focus;
    const parent = tree.reply.nodes[node]?.parent ?? null;
    const siblings = parent === null ? [node] : (tree.children[parent] ?? []);
    const beside = (by: number) => siblings[siblings.indexOf(node) + by] ?? node;
    if (event.key === 'ArrowDown') this.choose(tree.children[node]?.[0] ?? node);
    else if (event.key === 'ArrowUp') this.choose(parent ?? node);
    else if (event.key === 'ArrowLeft') this.choose(beside(-1));
    else if (event.key === 'ArrowRight') this.choose(beside(1));
    else if (event.key === 'Enter') this.zoomTo(node);
    else if (event.key === ' ') this.showMoments(node);
    else if (event.key === 'Escape' && this.focus !== 0) this.zoomTo(0);
    else if (event.key === 'Escape' && this.selected !== null) this.choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
