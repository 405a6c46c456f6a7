// A map with a byte budget that forgets what was used least recently. An entry larger than the
// whole budget is not kept.
// SPDX-License-Identifier: Apache-2.0

export class ByteLru<V> {
  private readonly entries = new Map<string, { value: V; bytes: number }>();
  private total = 0;

  constructor(private readonly budgetBytes: number) {}

  get bytes(): number {
    return this.total;
  }
  get size(): number {
    return this.entries.size;
  }

  /** The value, which now counts as used last. */
  get(key: string): V | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  has(key: string): boolean {
    return this.entries.has(key);
  }

  set(key: string, value: V, bytes: number): void {
    this.delete(key);
    if (bytes > this.budgetBytes) return;
    this.entries.set(key, { value, bytes });
    this.total += bytes;
    for (const oldest of this.entries.keys()) {
      if (this.total <= this.budgetBytes) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.total -= entry.bytes;
    this.entries.delete(key);
  }

  clear(): void {
    this.entries.clear();
    this.total = 0;
  }
}
