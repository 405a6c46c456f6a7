// Monotonic ns to wall time by the trace's anchors: the nearest anchor counts, as in the engine
// (which has all of them; a long trace's summary has 256, with what that is off at most). Durations
// never pass through here.
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
    const nearest = this.nearest(atNs);
    return (this.realtime[nearest] ?? 0n) + BigInt(Math.round(atNs - (this.at[nearest] ?? 0)));
  }

  /** The moment of a wall time; where a clock step makes several, the one nearest its anchor. */
  moment(epochNs: bigint): number | null {
    if (!this.isKnown) return null;
    let best = 0;
    let bestDistance = Infinity;
    for (let i = 0; i < this.realtime.length; i += 1) {
      const distance = Number(epochNs - (this.realtime[i] ?? 0n));
      if (Math.abs(distance) < Math.abs(bestDistance)) {
        best = i;
        bestDistance = distance;
      }
    }
    return (this.at[best] ?? 0) + bestDistance;
  }

  // Of two at the same distance, the later one.
  private nearest(atNs: number): number {
    let low = 0;
    let high = this.at.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const between = ((this.at[middle] ?? 0) + (this.at[middle + 1] ?? 0)) / 2;
      if (between <= atNs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
