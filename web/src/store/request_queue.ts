// Bounds how many requests are under way. What is wanted is given anew at each change of the
// view: requests that are no longer wanted are aborted, waiting ones are forgotten, and the order
// given is the order asked. Injected timers make it testable without waiting.
// SPDX-License-Identifier: Apache-2.0
import { isAbort } from '../protocol/client';

export interface Job {
  key: string;
  run: (signal: AbortSignal) => Promise<void>;
}

export interface Timers {
  set: (callback: () => void, ms: number) => number;
  clear: (id: number) => void;
}

const REAL_TIMERS: Timers = {
  set: (callback, ms) => window.setTimeout(callback, ms),
  clear: (id) => window.clearTimeout(id),
};

export class RequestQueue {
  private wanted: Job[] = [];
  private readonly running = new Map<string, AbortController>();
  private timer: number | null = null;

  constructor(
    private readonly most: number,
    private readonly delayMs: number,
    private readonly onError: (error: unknown) => void,
    private readonly onIdle: () => void,
    private readonly timers: Timers = REAL_TIMERS,
  ) {}

  get isIdle(): boolean {
    return this.running.size === 0 && this.wanted.length === 0 && this.timer === null;
  }

  /** Replaces what is wanted, most urgent first. Starts after a pause without further calls. */
  want(jobs: Job[]): void {
    this.wanted = jobs.filter((job) => !this.running.has(job.key));
    const keys = new Set(jobs.map((job) => job.key));
    for (const [key, controller] of this.running) {
      if (!keys.has(key)) {
        controller.abort();
        this.running.delete(key);
      }
    }
    if (this.timer !== null) this.timers.clear(this.timer);
    this.timer = this.timers.set(() => {
      this.timer = null;
      this.pump();
      if (this.isIdle) this.onIdle();
    }, this.delayMs);
  }

  private pump(): void {
    while (this.running.size < this.most) {
      const job = this.wanted.shift();
      if (!job) return;
      const controller = new AbortController();
      this.running.set(job.key, controller);
      job.run(controller.signal).then(
        () => this.done(job.key, controller),
        (error: unknown) => {
          this.done(job.key, controller);
          if (!isAbort(error)) this.onError(error);
        },
      );
    }
  }

  private done(key: string, controller: AbortController): void {
    if (this.running.get(key) === controller) this.running.delete(key);
    if (this.timer === null) this.pump();
    if (this.isIdle) this.onIdle();
  }
}
