// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { type Job, RequestQueue } from './request_queue';

class FakeTimers {
  private next = 1;
  private readonly pending = new Map<number, () => void>();
  set = (callback: () => void) => {
    this.pending.set(this.next, callback);
    return this.next++;
  };
  clear = (id: number) => void this.pending.delete(id);
  fire() {
    const callbacks = [...this.pending.values()];
    this.pending.clear();
    for (const callback of callbacks) callback();
  }
}

interface Started {
  key: string;
  signal: AbortSignal;
  finish: () => void;
  fail: (error: unknown) => void;
}

function setUp(most: number) {
  const timers = new FakeTimers();
  const errors: unknown[] = [];
  const started: Started[] = [];
  let idle = 0;
  const queue = new RequestQueue(
    most,
    20,
    (error) => errors.push(error),
    () => (idle += 1),
    timers,
  );
  const job = (key: string): Job => ({
    key,
    run: (signal) =>
      new Promise<void>((finish, fail) => started.push({ key, signal, finish, fail })),
  });
  const keys = () => started.map((entry) => entry.key);
  const settled = () => new Promise((resolve) => setTimeout(resolve));
  return { timers, errors, started, queue, job, keys, settled, idle: () => idle };
}

it('starts nothing before the view has come to rest', () => {
  const { timers, queue, job, keys } = setUp(4);
  queue.want([job('a')]);
  queue.want([job('b')]);
  expect(keys()).toEqual([]);
  timers.fire();
  expect(keys()).toEqual(['b']);
});

it('runs at most so many at once, in the order given', async () => {
  const { timers, queue, job, keys, started, settled } = setUp(2);
  queue.want([job('a'), job('b'), job('c')]);
  timers.fire();
  expect(keys()).toEqual(['a', 'b']);
  started[0]?.finish();
  await settled();
  expect(keys()).toEqual(['a', 'b', 'c']);
});

it('aborts what is no longer wanted and keeps what still is', () => {
  const { timers, queue, job, keys, started } = setUp(4);
  queue.want([job('a'), job('b')]);
  timers.fire();
  queue.want([job('b'), job('c')]);
  timers.fire();
  expect(started[0]?.signal.aborted).toBe(true);
  expect(started[1]?.signal.aborted).toBe(false);
  expect(keys()).toEqual(['a', 'b', 'c']);
});

it('reports errors, but not those of requests that it gave up itself', async () => {
  const { timers, queue, job, started, errors, settled } = setUp(4);
  queue.want([job('a'), job('b')]);
  timers.fire();
  started[0]?.fail(new DOMException('gone', 'AbortError'));
  started[1]?.fail(new Error('broken'));
  await settled();
  expect(errors).toEqual([new Error('broken')]);
  expect(queue.isIdle).toBe(true);
});

it('says when it has nothing more to do, also when nothing was wanted', async () => {
  const { timers, queue, job, started, settled, idle } = setUp(1);
  queue.want([]);
  expect(queue.isIdle).toBe(false);
  timers.fire();
  expect(idle()).toBe(1);
  queue.want([job('a'), job('b')]);
  timers.fire();
  started[0]?.finish();
  await settled();
  expect(idle()).toBe(1);
  started[1]?.finish();
  await settled();
  expect(idle()).toBe(2);
});
