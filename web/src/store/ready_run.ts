// Waits until the server has loaded a run, or two at once, telling how far it is. Opening again
// what is open costs one request.
// SPDX-License-Identifier: Apache-2.0
import type { Client } from '../protocol/client';
import type { RunStatus } from '../protocol/types';

const POLL_MS = 120;

export interface Waiting {
  signal: AbortSignal;
  show: (status: RunStatus) => void;
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export async function untilReady(client: Client, run: string, waiting: Waiting): Promise<void> {
  const { signal, show, pause = pauseFor } = waiting;
  let status = await client.open(run);
  while (status.state === 'loading') {
    show(status);
    await pause(POLL_MS, signal);
    status = await client.status(run, signal);
  }
  if (status.state !== 'ready') {
    throw new Error(status.error ?? 'Opening this run was cancelled.');
  }
}

/** `base` beside `run`, which stays open whether there is room for both or not. */
export async function untilBothReady(
  client: Client,
  run: string,
  base: string,
  waiting: Waiting,
): Promise<void> {
  await untilReady(client, base, waiting);
  // The server forgets one for the other where its memory isn't enough.
  if ((await client.status(run, waiting.signal)).state === 'ready') return;
  await untilReady(client, run, waiting);
  if ((await client.status(base, waiting.signal)).state === 'ready') return;
  throw new Error(
    'The two traces do not fit into the server’s memory together: start it with a larger --memory.',
  );
}

function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('left the page', 'AbortError'));
    });
  });
}
