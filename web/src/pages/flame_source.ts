// Asks the server for what the flame graph shows, when that changes: one tree, the two around a
// function, or a difference. What is asked for last is what is shown, whatever comes when.
// SPDX-License-Identifier: Apache-2.0
import { diffTree, type FlameTree, flameTree } from '../model/flame';
import { hasWaits, isHeap } from '../model/flame_choice';
import { isAbort, type Query } from '../protocol/client';
import type { ViewerStore } from '../store/viewer_store';

const ASK_PAUSE_MS = 250;

/** The trees of a picture: one; of a butterfly the callees, then the callers. */
export interface FlameShown {
  trees: FlameTree[];
  /** what the moments of a frame are asked with; null: there are none */
  query: Query | null;
}

export interface FlameEvents {
  asking: () => void;
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
    const ask = this.plan();
    const wanted = JSON.stringify([ask.kind, ask.query]);
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    this.asking.abort();
    window.clearTimeout(this.timer);
    this.events.asking();
    this.timer = window.setTimeout(() => this.ask(ask.kind, ask.query), ASK_PAUSE_MS);
  }

  private plan(): { kind: 'tree' | 'butterfly' | 'diff'; query: Query } {
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
      return { kind: 'diff', query };
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

  private ask(kind: 'tree' | 'butterfly' | 'diff', query: Query): void {
    this.asking = new AbortController();
    this.fetch(kind, query, this.asking.signal).then(
      (shown) => this.events.came(shown),
      (error: unknown) => {
        if (isAbort(error)) return;
        this.wanted = '';
        this.events.failed(error instanceof Error ? error.message : String(error));
      },
    );
  }

  private async fetch(kind: string, query: Query, signal: AbortSignal): Promise<FlameShown> {
    const { client, run } = this.store;
    if (kind === 'diff') {
      return { trees: [diffTree(await client.flameDiff(run, query, signal))], query: null };
    }
    if (kind === 'butterfly') {
      const { callees, callers } = await client.flameButterfly(run, query, signal);
      return { trees: [flameTree(callees), flameTree(callers)], query: null };
    }
    return { trees: [flameTree(await client.flame(run, query, signal))], query };
  }
}
