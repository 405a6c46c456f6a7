// The flame graph below the timeline: where the time or the memory of a stretch, worker, task, span
// or label went, as picture or table. From a frame one goes to its moments on the timeline.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import {
  butterflyBoxes,
  type FlameBox,
  flameBoxes,
  flameFacts,
  flameMatches,
  flameName,
  type FlameSpot,
  type FlameTree,
  foundText,
} from '../model/flame';
import type { FlameFunction } from '../model/flame_choice';
import { drawFlame, FLAME_ROW_PX, hitFlame, type PaintedTree, paintedTrees } from '../render/flame';
import type { Palette } from '../render/palette';
import type { ViewerStore } from '../store/viewer_store';
import { flameChosen } from '../ui/flame_chosen';
import { flameControls } from '../ui/flame_controls';
import { flameNotes } from '../ui/flame_notes';
import { flameSteps } from '../ui/flame_steps';
import { flameTable } from '../ui/flame_table';
import { Tooltip } from '../ui/tooltip';
import { type FlameShown, FlameSource } from './flame_source';
import { Surface } from './surface';

const LEAST_PX = 0.4;
const NOTHING: FlameShown = { trees: [], compared: null, query: null };
const HINT = 'Click a frame for its numbers, double-click to zoom.';
const AROUND_HINT = 'Click a frame for its numbers, double-click one to stand on it.';
const CHOOSE = 'Choose a function: click ⇅ beside it here, or its frame in another view.';

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
  private readonly source: FlameSource;
  private shown: FlameShown = NOTHING;
  private painted: PaintedTree[] = [];
  private boxes: FlameBox[] = [];
  private focus = 0;
  private selected: FlameSpot | null = null;
  private hovered: FlameSpot | null = null;

  constructor(
    private readonly store: ViewerStore,
    private readonly redraw: () => void,
    private readonly signal: AbortSignal,
  ) {
    this.element = h(
      'section',
      { class: 'flame hidden', 'aria-label': 'flame graph' },
      flameControls(store, this.found),
      this.notes,
      this.chosen,
      this.empty,
      this.scroller,
      this.table,
    );
    const events = {
      asking: () => this.element.setAttribute('aria-busy', 'true'),
      loading: (text: string) => replaceChildren(this.notes, h('span', { role: 'status' }, text)),
      came: (shown: FlameShown) => this.show(shown, null),
      failed: (message: string) => this.show(NOTHING, message),
    };
    this.source = new FlameSource(store, events, signal);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.scroller);
    signal.addEventListener('abort', () => observer.disconnect());
    const ask = () => this.source.askSoon();
    store.flame.watch(() => this.changed());
    store.view.watch(ask);
    store.range.watch(ask);
    this.listen(signal);
  }

  draw(palette: Palette): void {
    const choice = this.store.flame.value;
    if (this.painted.length === 0 || !choice || this.showsTable()) return;
    const frame = this.surface.frame(this.store.view.value, palette);
    const picture = { ...frame, scroll: this.scroller.scrollTop };
    drawFlame(picture, this.painted, this.boxes, {
      matches: this.shown.trees.map((tree) => flameMatches(tree, choice.search)),
      selected: this.selected,
      hovered: this.hovered,
    });
  }

  private changed(): void {
    const choice = this.store.flame.value;
    this.element.classList.toggle('hidden', choice === null);
    if (!choice) return this.tooltip.hide();
    this.store.loadOthers(this.signal);
    this.showParts();
    this.showFound();
    this.showTable();
    this.source.askSoon();
    this.redraw();
  }

  private show(shown: FlameShown, problem: string | null): void {
    this.shown = shown;
    this.painted = paintedTrees(shown.trees);
    this.focus = 0;
    this.choose(null);
    if (problem === null) replaceChildren(this.notes, ...flameNotes(shown.trees, shown.compared));
    else replaceChildren(this.notes, h('div', { role: 'alert' }, problem));
    this.showParts();
    this.showFound();
    this.showTable();
    this.layOut();
    this.scrollToMiddle();
    this.element.setAttribute('aria-busy', 'false');
  }

  private showsTable(): boolean {
    const choice = this.store.flame.value;
    return choice?.shows === 'table' || (choice?.shows === 'butterfly' && !choice.around);
  }

  /** The picture or the table; where there is nothing, why, and what to do. */
  private showParts(): void {
    const reply = this.shown.trees[0]?.reply;
    const isEmpty = !reply || reply.count === 0;
    this.scroller.classList.toggle('hidden', isEmpty || this.showsTable());
    this.table.classList.toggle('hidden', isEmpty || !this.showsTable());
    this.empty.classList.toggle('hidden', !isEmpty);
    if (!isEmpty) return;
    const why = (reply?.notes ?? []).map((note) => h('p', {}, note));
    replaceChildren(this.empty, reply ? h('h3', {}, 'Nothing to show') : null, ...why);
  }

  private showFound(): void {
    const tree = this.shown.trees[0];
    const search = this.store.flame.value?.search ?? '';
    const found = tree && this.shown.trees.length === 1 ? flameMatches(tree, search) : null;
    this.found.textContent = tree && found ? foundText(tree, found) : '';
  }

  private showTable(): void {
    const choice = this.store.flame.value;
    const tree = this.shown.trees[0];
    if (!tree || !choice || !this.showsTable()) return;
    const table = flameTable(tree, choice.search, {
      find: (name) => this.store.showFlame({ search: name, shows: 'icicle' }),
      around: (of) => this.around(of),
    });
    const hint = choice.shows === 'butterfly' ? h('p', { class: 'soft' }, CHOOSE) : null;
    replaceChildren(this.table, hint, table);
  }

  private around(of: FlameFunction): void {
    this.store.showFlame({ shows: 'butterfly', around: of, base: 'none' });
  }

  private layOut(): void {
    const [tree, callers] = this.shown.trees;
    if (!tree) return;
    const least = LEAST_PX / Math.max(this.surface.widthCss, 1);
    this.boxes = callers
      ? butterflyBoxes(tree, callers, least)
      : flameBoxes(tree, this.focus, least);
    const deepest = this.boxes.reduce((most, box) => Math.max(most, box.row), 0);
    this.content.style.height = `${(deepest + 1) * FLAME_ROW_PX}px`;
    this.redraw();
  }

  /** Of a butterfly, to the row of its function. */
  private scrollToMiddle(): void {
    const middle = this.boxes.find((box) => box.part === 0);
    const height = this.scroller.clientHeight;
    const isButterfly = this.shown.trees.length > 1;
    this.scroller.scrollTop =
      isButterfly && middle ? Math.max((middle.row + 0.5) * FLAME_ROW_PX - height / 2, 0) : 0;
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.scroller;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.surface.resize(clientWidth, clientHeight);
    this.layOut();
  }

  /** A butterfly isn't zoomed: another function is its middle. */
  private zoomTo(spot: FlameSpot): void {
    const tree = this.shown.trees[spot.part];
    const at = tree?.reply.nodes[spot.node]?.function ?? null;
    const of = at === null ? undefined : tree?.reply.functions[at];
    if (this.shown.trees.length > 1) {
      if (of) this.around({ name: of.name, module: of.module });
      return;
    }
    this.focus = spot.node;
    this.layOut();
    this.scroller.scrollTop = Math.max(((tree?.depth[spot.node] ?? 0) - 2) * FLAME_ROW_PX, 0);
  }

  /** Selects a frame and says what it is. */
  private choose(spot: FlameSpot | null): void {
    this.selected = spot;
    if (this.store.moments.value.length > 0) this.store.moments.set([]);
    const tree = spot ? this.shown.trees[spot.part] : undefined;
    if (!spot || !tree) {
      const isPicture = (this.shown.trees[0]?.reply.count ?? 0) > 0 && !this.showsTable();
      const hint = this.shown.trees.length > 1 ? AROUND_HINT : HINT;
      replaceChildren(this.chosen, isPicture ? h('span', { class: 'soft' }, hint) : null);
    } else {
      const moments = this.shown.query ? () => this.showMoments(spot) : null;
      const around = (of: FlameFunction) => this.around(of);
      replaceChildren(this.chosen, ...flameChosen(tree, spot.node, { moments, around }));
    }
    this.redraw();
  }

  private showMoments(spot: FlameSpot): void {
    const { store } = this;
    const { query } = this.shown;
    if (!query) return;
    store.client.flameMoments(store.run, query, spot.node).then(
      (found) => {
        if (this.selected !== spot || this.shown.query !== query) return;
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
    const spotAt = (event: MouseEvent): FlameSpot | null => {
      const box = at(event);
      return box && { part: box.part, node: box.node };
    };
    this.scroller.addEventListener('scroll', () => this.redraw(), { signal });
    const { canvas } = this;
    canvas.addEventListener('pointermove', (event) => this.hover(at(event), event), { signal });
    canvas.addEventListener('pointerleave', (event) => this.hover(null, event), { signal });
    canvas.addEventListener('click', (event) => this.choose(spotAt(event)), { signal });
    const all = { part: 0, node: 0 };
    canvas.addEventListener('dblclick', (event) => this.zoomTo(spotAt(event) ?? all), { signal });
    canvas.addEventListener('keydown', (event) => this.key(event), { signal });
  }

  private hover(box: FlameBox | null, event: MouseEvent): void {
    this.hovered = box;
    const tree = box ? this.shown.trees[box.part] : undefined;
    if (!box || !tree) this.tooltip.hide();
    else {
      const at = tree.reply.nodes[box.node]?.function ?? null;
      const module = at === null ? '' : (tree.reply.functions[at]?.module ?? '');
      const lines = flameFacts(tree, box.node);
      if (module !== '') lines.push(module);
      const title = flameName(tree.reply, box.node);
      this.tooltip.show({ title, lines }, event.clientX, event.clientY);
    }
    this.redraw();
  }

  private key(event: KeyboardEvent): void {
    const spot = this.selected ?? { part: 0, node: this.focus };
    const tree = this.shown.trees[spot.part];
    if (!tree) return;
    const to = (node: number) => this.choose({ part: spot.part, node });
    if (event.key === 'Enter') this.zoomTo(spot);
    else if (event.key === ' ') this.showMoments(spot);
    else if (event.key === 'Escape' && this.focus !== 0) this.zoomTo({ part: 0, node: 0 });
    else if (event.key === 'Escape' && this.selected !== null) this.choose(null);
    else {
      const next = neighbour(tree, spot, event.key);
      if (next === null) return;
      to(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** The frame that an arrow leads to; null: another key. Callers stand above, so down is back. */
function neighbour(tree: FlameTree, { part, node }: FlameSpot, key: string): number | null {
  const parent = tree.reply.nodes[node]?.parent ?? null;
  const siblings = parent === null ? [node] : (tree.children[parent] ?? []);
  const beside = (by: number) => siblings[siblings.indexOf(node) + by] ?? node;
  const inner = tree.children[node]?.[0] ?? node;
  if (key === 'ArrowDown') return part === 0 ? inner : (parent ?? node);
  if (key === 'ArrowUp') return part === 0 ? (parent ?? node) : inner;
  if (key === 'ArrowLeft') return beside(-1);
  return key === 'ArrowRight' ? beside(1) : null;
}
