// The tiles of one kind of track: what is there, what to ask for, and what to draw meanwhile. A
// tile that isn't there yet is shown by the nearest coarser one, so a pan or zoom never goes
// blank.
// SPDX-License-Identifier: Apache-2.0
import { ByteLru } from '../base/lru';
import { parent, type TileId, tileWindow } from '../model/tiles';
import type { Window } from '../protocol/client';
import type { Columns } from '../protocol/columns';
import type { Job } from './request_queue';

const BUDGET_BYTES = 48 * 1024 * 1024;
/** How many levels up a stand-in is looked for; 2^20 bins of a tile are one bin there. */
const MOST_LEVELS_UP = 24;

export interface Placed<T> {
  id: TileId;
  tile: T;
  /** false: a coarser tile stands in */
  isExactLevel: boolean;
}

export interface TileSource<T> {
  name: string;
  fetch: (chunk: string, window: Window, signal: AbortSignal) => Promise<Columns>;
  parse: (columns: Columns) => T;
}

export class TileStore<T> {
  private readonly tiles = new ByteLru<T>(BUDGET_BYTES);

  constructor(
    private readonly source: TileSource<T>,
    private readonly onArrival: () => void,
  ) {}

  /** The tile, or the nearest coarser one that covers it, or null. */
  find(chunk: string, id: TileId): Placed<T> | null {
    for (let up = 0; up <= MOST_LEVELS_UP; up += 1) {
      const at = up === 0 ? id : parent(id, id.level + up);
      const tile = this.tiles.get(this.key(chunk, at));
      if (tile !== undefined) return { id: at, tile, isExactLevel: up === 0 };
    }
    return null;
  }

  /** A request for each tile that isn't there. */
  jobs(chunks: readonly string[], ids: readonly TileId[]): Job[] {
    const out: Job[] = [];
    for (const id of ids) {
      for (const chunk of chunks) {
        const key = this.key(chunk, id);
        if (!this.tiles.has(key)) out.push({ key, run: (signal) => this.load(chunk, id, signal) });
      }
    }
    return out;
  }

  clear(): void {
    this.tiles.clear();
  }

  private async load(chunk: string, id: TileId, signal: AbortSignal): Promise<void> {
    const columns = await this.source.fetch(chunk, tileWindow(id), signal);
    if (signal.aborted) return;
    this.tiles.set(this.key(chunk, id), this.source.parse(columns), columns.bytes);
    this.onArrival();
  }

  private key(chunk: string, id: TileId): string {
    return `${this.source.name}/${chunk}/${id.level}/${id.index}`;
  }
}
