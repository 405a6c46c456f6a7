// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Client } from '../protocol/client';
import type { RunState } from '../protocol/types';
import { untilBothReady, untilReady } from './ready_run';

/** A server with room for so many runs; each takes two looks to load. */
function server(room: number, fails: Record<string, string> = {}) {
  const runs = new Map<string, { state: RunState; looks: number }>();
  const asked: string[] = [];
  const answer = (run: string, isOpen: boolean) => {
    const at = runs.get(run) ?? { state: 'closed' as RunState, looks: 0 };
    runs.delete(run);
    runs.set(run, at); // used last
    if (isOpen && at.state !== 'ready') Object.assign(at, { state: 'loading', looks: 0 });
    else if (at.state === 'loading' && ++at.looks === 2) at.state = fails[run] ? 'failed' : 'ready';
    const ready = [...runs].filter(([, other]) => other.state === 'ready');
    if (ready.length > room && ready[0]) ready[0][1].state = 'closed';
    return { run, state: at.state, bytes_total: 10, error: fails[run] ?? null };
  };
  const client = new Client(null, async (url, init) => {
    asked.push(`${init.method} ${url.replace('api/v1/runs/', '')}`);
    const [run = '', action] = url.replace('api/v1/runs/', '').split('/');
    return new Response(JSON.stringify(answer(run, action === 'open')));
  });
  return { client, asked, stateOf: (run: string) => runs.get(run)?.state };
}

const waiting = () => {
  const shown: string[] = [];
  return {
    shown,
    signal: new AbortController().signal,
    show: ({ run, state }: { run: string; state: RunState }) => void shown.push(`${run} ${state}`),
    pause: async () => undefined,
  };
};

describe('a run that is being loaded', () => {
  it('is asked for until it is there, and shown meanwhile', async () => {
    const { client, asked } = server(1);
    const wait = waiting();
    await untilReady(client, 'a', wait);
    expect(asked).toEqual(['POST a/open', 'GET a', 'GET a']);
    expect(wait.shown).toEqual(['a loading', 'a loading']);
    await untilReady(client, 'a', wait);
    expect(asked.length).toBe(4);
  });
  it('that can not be loaded says why', async () => {
    const { client } = server(1, { a: 'it holds no events' });
    await expect(untilReady(client, 'a', waiting())).rejects.toThrow('it holds no events');
  });
});

describe('two runs', () => {
  it('are there together where there is room', async () => {
    const { client, stateOf } = server(2);
    await untilReady(client, 'a', waiting());
    await untilBothReady(client, 'a', 'base', waiting());
    expect([stateOf('a'), stateOf('base')]).toEqual(['ready', 'ready']);
  });
  it('that do not fit together say so, and the one on the page stays', async () => {
    const { client, stateOf } = server(1);
    await untilReady(client, 'a', waiting());
    const both = untilBothReady(client, 'a', 'base', waiting());
    await expect(both).rejects.toThrow('--memory');
    expect(stateOf('a')).toBe('ready');
  });
});
