// The page's one way to tell others about a change: a value with listeners. Setting an equal value
// tells nobody. Listeners run at once, in the order in which they came.
// SPDX-License-Identifier: Apache-2.0

export class Signal<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener(value);
  }

  /** Calls `listener` now and at each change; returns how to stop that. */
  watch(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    listener(this.current);
    return () => this.listeners.delete(listener);
  }
}
