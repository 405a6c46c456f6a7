// Asks the server for what the flame graph shows, when that changes: one tree, the two around a
// function, or a difference. What is asked for last is what is shown, whatever comes when.
// SPDX-License-Identifier: Apache-2.0
import { diffTree, type FlameTree, flameTree } from '../model/flame';
import { comparedText, FLAME_CHOICE, hasWaits, isHeap } from '../model/flame_choice';
import { isAbort, type Query } from '../protocol/client';
import type { RunStatus } from '../protocol/types';
import { untilBothReady } from '../store/ready_run';
import type { ViewerStore } from '../store/viewer_store';
import { loadingText } from './open_run';

const ASK_PAUSE_MS = 250;

type Plan =
  | { kind: 'tree' | 'butterfly'; query: Query }
  | { kind: 'diff'; query: Query; other: string | null };

/** The trees of a picture: one; of a butterfly the callees, then the callers. */
export interface FlameShown {
  trees: FlameTree[];
  /** of a difference, what its sides are of; null: it is none */
  compared: string | null;
  /** what the moments of a frame are asked with; null: there are none */
  query: Query | null;
}

export interface FlameEvents {
  asking: () => void;
  /** what is being loaded for it */
  loading: (text: string) => void;
  came: (shown: FlameShown) => void;
  failed: (message: string) => void;
}

export class FlameSource {
  private wanted = '';
  private asking = new AbortController();
  private timer = 0;

  constructor(
    private readonly store: ViewerStore,
    private readonly events: FlameEvents,
    signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => {
      this.asking.abort();
      window.clearTimeout(this.timer);
    });
  }

  /** Asks if what is to be shown is another than before. */
  askSoon(): void {
    if (!this.store.flame.value) return;
    const plan = this.plan();
    const wanted = JSON.stringify([plan.kind, plan.query]);
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    this.asking.abort();
    window.clearTimeout(this.timer);
    this.events.asking();
    this.timer = window.setTimeout(() => this.ask(plan), ASK_PAUSE_MS);
  }

  private plan(): Plan {
    const { store } = this;
    const choice = store.flame.value;
    const query = this.baseQuery();
    const { base, stretch } = store.flameBase();
    if (choice?.shows === 'butterfly' && choice.around) {
      query['function'] = choice.around.name;
      query['module'] = choice.around.module;
      return { kind: 'butterfly', query };
    }
    if (choice?.shows === 'inverted') query['inverted'] = 1;
    if (base !== 'none') {
      if (stretch) [query['before_from'], query['before_to']] = stretch;
      const other = base === 'run' ? (choice?.baseRun ?? null) : null;
      if (other !== null) query['before_run'] = other;
      return { kind: 'diff', query, other };
    }
    if (choice?.shows === 'time') query['order'] = 'time';
    return { kind: 'tree', query };
  }

  private baseQuery(): Query {
    const choice = this.store.flame.value;
    const query: Query = {};
    const stretch = this.store.flameStretch();
    if (stretch) [query['from'], query['to']] = stretch;
    if (!choice) return query;
    if (choice.of !== 'cpu') query['of'] = choice.of;
    if (choice.worker !== null) query['worker'] = choice.worker;
    if (choice.task !== null) query['task'] = choice.task;
    if (choice.span !== null) query['span'] = choice.span;
    if (choice.label.trim() !== '') query['label'] = choice.label.trim();
    if (hasWaits(choice.of) && choice.top !== 'reason') query['top'] = choice.top;
    if (hasWaits(choice.of) && choice.parked) query['parked'] = 1;
    if (isHeap(choice.of) && choice.counts) query['counts'] = 1;
    if (choice.lines) query['lines'] = 1;
    return query;
  }

  private compared(): string {
    const { store } = this;
    const choice = store.flame.value ?? FLAME_CHOICE;
    const name = choice.baseRun === null ? '' : store.nameOf(choice.baseRun);
    const before = store.flameBase().stretch;
    return comparedText(store.flameScope(), store.flameStretch(), choice, before, name);
  }

  private ask(plan: Plan): void {
    this.asking = new AbortController();
    this.fetch(plan, this.asking.signal).then(
      (shown) => this.events.came(shown),
      (error: unknown) => {
        if (isAbort(error)) return;
        this.wanted = '';
        this.events.failed(error instanceof Error ? error.message : String(error));
      },
    );
  }

  private async fetch(plan: Plan, signal: AbortSignal): Promise<FlameShown> {
    const { client, run } = this.store;
    const { query } = plan;
    if (plan.kind === 'diff') {
      if (plan.other !== null) await this.load(plan.other, signal);
      const diff = await client.flameDiff(run, query, signal);
      return { trees: [diffTree(diff)], compared: this.compared(), query: null };
    }
    if (plan.kind === 'butterfly') {
      const { callees, callers } = await client.flameButterfly(run, query, signal);
      return { trees: [flameTree(callees), flameTree(callers)], compared: null, query: null };
    }
    return { trees: [flameTree(await client.flame(run, query, signal))], compared: null, query };
  }

  private async load(other: string, signal: AbortSignal): Promise<void> {
    const { client, run } = this.store;
    const show = (status: RunStatus) => {
      if (signal.aborted) return;
      this.events.loading(`opening ${this.store.nameOf(status.run)}: ${loadingText(status)}`);
    };
    await untilBothReady(client, run, other, { signal, show });
  }
}
