// The state of an open run that the page's parts share: what is on screen, what is selected, what
// the panels show. Every change goes through here, so that the URL and all panels follow.
// SPDX-License-Identifier: Apache-2.0
import { Signal } from '../base/signal';
import { baseStretch, FLAME_CHOICE, type FlameChoice, type Stretch } from '../model/flame_choice';
import {
  type GroupKind,
  type Layout,
  layOut,
  pageOf,
  rowBeside,
  type RowChoices,
  type RowName,
} from '../model/layout';
import { EMPTY, type Panel, type Selection, type Spot, type UrlState } from '../model/url_state';
import { fitAll, fitRange, reveal, type View } from '../model/view';
import { WallClock } from '../model/wall';
import { type Client, isAbort } from '../protocol/client';
import type {
  Finding,
  FindingList,
  FlameMoments,
  RunEntry,
  Summary,
  TaskLife,
} from '../protocol/types';

/** A stretch that is framed: in a lane, or in all rows. */
export interface Mark {
  lane: number | null;
  start: number;
  end: number;
}

/** How much room is left on both sides of what one jumps to, as a share of its length. */
const JUMP_MARGIN = 2;
const LEAST_JUMP_NS = 20_000;

export class ViewerStore {
  readonly clock: WallClock;
  readonly view: Signal<View>;
  readonly selection = new Signal<Selection | null>(null);
  readonly mark = new Signal<Mark | null>(null);
  /** a place in a lane whose park or wait the details show; those have no number of their own */
  readonly spot = new Signal<Spot | null>(null);
  readonly task = new Signal<string | null>(null);
  readonly taskLife = new Signal<TaskLife | null>(null);
  readonly range = new Signal<[number, number] | null>(null);
  readonly panel = new Signal<Panel>('findings');
  readonly finding = new Signal<number | null>(null);
  readonly findings = new Signal<FindingList | null>(null);
  readonly choices = new Signal<RowChoices>({ folded: [], pages: {}, fields: {} });
  readonly layout: Signal<Layout>;
  readonly scroll = new Signal(0);
  /** the row that the keyboard stands on */
  readonly focusRow = new Signal<RowName | null>(null);
  /** the flame graph, where it is open, and the moments of the frame that it shows */
  readonly flame = new Signal<FlameChoice | null>(null);
  readonly moments = new Signal<FlameMoments['moments']>([]);
  /** the other runs that the server has, the base first; null: nobody has asked yet */
  readonly others = new Signal<readonly RunEntry[] | null>(null);
  readonly problem = new Signal<string | null>(null);
  private rest: [string, string][] = [];
  private readonly history: View[] = [];

  constructor(
    readonly client: Client,
    readonly run: string,
    readonly summary: Summary,
  ) {
    this.clock = new WallClock(summary.anchors);
    this.view = new Signal(fitAll(summary.duration_ns));
    this.layout = new Signal(layOut(summary, this.choices.value));
  }

  get durationNs(): number {
    return this.summary.duration_ns;
  }

  /** Changes the view by a jump, which Backspace undoes. */
  jump(view: View): void {
    this.history.push(this.view.value);
    if (this.history.length > 100) this.history.shift();
    this.view.set(view);
  }

  back(): void {
    const view = this.history.pop();
    if (view) this.view.set(view);
  }

  fit(): void {
    this.jump(fitAll(this.durationNs));
  }

  /** Shows [start, end] with room around it, never more than a finding's surroundings. */
  show(start: number, end: number): void {
    const length = Math.max(end - start, LEAST_JUMP_NS);
    const middle = (start + end) / 2;
    const [from, to] = [middle - length / 2, middle + length / 2];
    this.jump(fitRange(from, to, JUMP_MARGIN, this.durationNs));
  }

  /** Moves, without a zoom, so that a moment is in sight. */
  reveal(at: number): void {
    const view = reveal(this.view.value, at, this.durationNs);
    if (view !== this.view.value) this.jump(view);
  }

  select(selection: Selection | null, mark: Mark | null): void {
    this.mark.set(mark);
    this.spot.set(null);
    this.selection.set(selection);
    if (selection) this.panel.set('details');
  }

  /** Selects the park or kernel wait of a lane at a moment. */
  selectSpot(lane: number, at: number, mark: Mark): void {
    this.select(null, mark);
    this.spot.set({ lane, at });
    this.panel.set('details');
  }

  selectTask(task: string | null): void {
    if (task !== this.task.value) this.taskLife.set(null);
    this.task.set(task);
    if (task !== null) this.panel.set('task');
    else if (this.panel.value === 'task') this.panel.set('findings');
  }

  toggleFold(kind: string): void {
    const { folded } = this.choices.value;
    const isFolded = folded.includes(kind);
    this.choose({ folded: isFolded ? folded.filter((name) => name !== kind) : [...folded, kind] });
  }

  /** Shows another page of a group's rows. */
  turnPage(kind: GroupKind, page: number): void {
    this.choose({ pages: { ...this.choices.value.pages, [kind]: page } });
  }

  /** Draws a custom type by another of its numbers. */
  drawBy(type: string, field: string): void {
    this.choose({ fields: { ...this.choices.value.fields, [type]: field } });
  }

  /** The worker's lane is laid out: on the page of it, and not folded away. */
  layOutLane(lane: number): void {
    const { folded, pages } = this.choices.value;
    if (folded.includes('workers')) this.toggleFold('workers');
    if (pageOf(lane) !== (pages['workers'] ?? 0)) this.turnPage('workers', pageOf(lane));
  }

  /** The keyboard stands on a worker's lane; null: on no row. */
  focusLane(lane: number | null): void {
    this.focusRow.set(lane === null ? null : { kind: 'workers', id: lane });
  }

  /** The keyboard goes to the row above or below, over the pages of a group. */
  moveRow(step: number): void {
    const beside = rowBeside(this.layout.value, this.focusRow.value, step);
    if (!beside) return;
    if ('row' in beside) return this.focusRow.set({ kind: beside.row.kind, id: beside.row.id });
    this.turnPage(beside.kind, beside.page);
    const rows = this.layout.value.groups.find(({ kind }) => kind === beside.kind)?.rows ?? [];
    const row = step > 0 ? rows[0] : rows.at(-1);
    if (row) this.focusRow.set({ kind: row.kind, id: row.id });
  }

  private choose(change: Partial<RowChoices>): void {
    this.choices.set({ ...this.choices.value, ...change });
    this.layout.set(layOut(this.summary, this.choices.value));
  }

  /** Jumps to the nth finding: its place, its task, its poll. */
  openFinding(index: number): void {
    const finding = this.findings.value?.findings[index];
    if (!finding) return;
    this.finding.set(index);
    if (finding.at_ns !== null) this.goToFinding(finding, finding.at_ns);
    if (finding.task !== null) this.selectTask(finding.task);
    this.panel.set('findings');
  }

  private goToFinding(finding: Finding, at: number): void {
    const end = finding.end_ns ?? at + (finding.worst_ns ?? 0);
    this.show(at, Math.max(end, at));
    if (finding.lane !== null) this.layOutLane(finding.lane);
    this.focusLane(finding.lane);
    const selection =
      finding.poll === null ? null : { what: 'polls' as const, index: finding.poll };
    this.select(selection, { lane: finding.lane, start: at, end: Math.max(end, at) });
  }

  /** Opens the flame graph, or changes how it shows. */
  showFlame(change: Partial<FlameChoice>): void {
    this.flame.set({ ...(this.flame.value ?? FLAME_CHOICE), ...change });
  }

  /** What the flame graph's time is: a range that was taken away is what is on screen. */
  flameScope(): FlameChoice['scope'] {
    const choice = this.flame.value ?? FLAME_CHOICE;
    if (choice.scope === 'range' && !this.range.value) return 'screen';
    return choice.scope === 'stretch' && !choice.stretch ? 'screen' : choice.scope;
  }

  /** The stretch of time that the flame graph is of; null: the whole trace. */
  flameStretch(): readonly [number, number] | null {
    const scope = this.flameScope();
    if (scope === 'all') return null;
    if (scope === 'range') return this.range.value;
    if (scope === 'stretch') return this.flame.value?.stretch ?? null;
    return [this.view.value.start, this.view.value.end];
  }

  /** What the flame graph is compared with, and the stretch of it; a range may be taken away. */
  flameBase(): { base: FlameChoice['base']; stretch: Stretch | null } {
    const base = this.flame.value?.base ?? 'none';
    if (base === 'range' && !this.range.value) return { base: 'none', stretch: null };
    return { base, stretch: baseStretch(base, this.flameStretch(), this.range.value) };
  }

  /** Asks which other runs there are to compare with; once. */
  loadOthers(signal: AbortSignal): void {
    if (this.others.value !== null) return;
    this.others.set([]);
    this.client.runs(signal).then(
      ({ runs }) => {
        const others = runs.filter(({ run }) => run !== this.run);
        this.others.set([...others].sort((a, b) => Number(b.is_base) - Number(a.is_base)));
      },
      (error: unknown) => {
        if (isAbort(error)) return;
        this.problem.set(error instanceof Error ? error.message : String(error));
      },
    );
  }

  /** A run's name as the list has it; its id where that isn't there. */
  nameOf(run: string): string {
    return this.others.value?.find((entry) => entry.run === run)?.name ?? run;
  }

  closeFlame(): void {
    this.moments.set([]);
    this.flame.set(null);
  }

  toUrl(): UrlState {
    const view = this.view.value;
    const whole = fitAll(this.durationNs);
    const isWhole = view.start === whole.start && view.end === whole.end;
    return {
      run: this.run,
      start: isWhole ? null : view.start,
      end: isWhole ? null : view.end,
      task: this.task.value,
      selection: this.selection.value,
      spot: this.spot.value,
      panel: this.panel.value === 'findings' ? null : this.panel.value,
      range: this.range.value,
      ...this.choices.value,
      folded: [...this.choices.value.folded],
      scroll: this.scroll.value || null,
      finding: this.finding.value,
      flame: this.flame.value,
      rest: this.rest,
    };
  }

  fromUrl(state: UrlState): void {
    this.rest = state.rest;
    const { start, end } = state;
    this.view.set(start !== null && end !== null ? { start, end } : fitAll(this.durationNs));
    this.choose({ folded: state.folded, pages: state.pages, fields: state.fields });
    if (state.task !== this.task.value) this.taskLife.set(null);
    this.task.set(state.task);
    this.mark.set(null); // the details frame what is selected
    this.selection.set(state.selection);
    this.spot.set(state.selection ? null : state.spot);
    this.range.set(state.range);
    this.finding.set(state.finding);
    this.flame.set(state.flame);
    this.scroll.set(state.scroll ?? 0);
    this.panel.set(state.panel ?? EMPTY.panel ?? 'findings');
  }
}
