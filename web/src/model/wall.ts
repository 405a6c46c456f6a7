// Monotonic ns to wall time by the trace's anchors: the last anchor before a moment counts, and the
// first one before that. Durations never pass through here, so a clock step can't change one.
// SPDX-License-Identifier: Apache-2.0
import type { Anchor } from '../protocol/types';

export class WallClock {
  private readonly at: number[];
  private readonly realtime: bigint[];

  constructor(anchors: readonly Anchor[]) {
    const sorted = [...anchors].sort((a, b) => a.at_ns - b.at_ns);
    this.at = sorted.map((anchor) => anchor.at_ns);
    this.realtime = sorted.map((anchor) => BigInt(anchor.realtime_ns));
  }

  get isKnown(): boolean {
    return this.at.length > 0;
  }

  /** ns since 1970 of a moment, or null in a trace without anchors. */
  epoch(atNs: number): bigint | null {
    if (!this.isKnown) return null;
    let low = 0;
    let high = this.at.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.at[middle] ?? 0) <= atNs) low = middle;
      else high = middle - 1;
    }
    return (this.realtime[low] ?? 0n) + BigInt(Math.round(atNs - (this.at[low] ?? 0)));
  }

  /** The moment of a wall time, by the last anchor whose own wall time isn't later. */
  moment(epochNs: bigint): number | null {
    if (!this.isKnown) return null;
    let best = 0;
    for (let i = 0; i < this.realtime.length; i += 1) {
      if ((this.realtime[i] ?? 0n) <= epochNs) best = i;
    }
    return (this.at[best] ?? 0) + Number(epochNs - (this.realtime[best] ?? 0n));
  }
}
