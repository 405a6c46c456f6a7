// Opens a run: asks for it, shows how far the server is, lets the user give up, and ends with the
// summary. Opening again what is open costs one request.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatBytes, formatCount } from '../base/format';
import type { Client } from '../protocol/client';
import type { RunStatus, Summary } from '../protocol/types';
import { untilReady } from '../store/ready_run';

export async function openRun(
  root: HTMLElement,
  client: Client,
  run: string,
  signal: AbortSignal,
): Promise<Summary> {
  document.title = `dial9: ${run}`;
  const bar = h('progress', { 'aria-label': 'read so far' });
  const text = h('p', { role: 'status' }, 'Asking the server…');
  const cancel = h('button', { on: { click: () => void giveUp(client, run) } }, 'Cancel');
  replaceChildren(
    root,
    h('main', { class: 'center' }, h('h1', {}, `Opening ${run}`), bar, text, cancel),
  );
  await untilReady(client, run, { signal, show: (status) => showProgress(bar, text, status) });
  return client.summary(run, signal);
}

async function giveUp(client: Client, run: string): Promise<void> {
  await client.close(run).catch(() => undefined);
  location.hash = '';
}

function showProgress(bar: HTMLProgressElement, text: HTMLElement, status: RunStatus): void {
  if (status.bytes_total > 0) {
    bar.max = status.bytes_total;
    bar.value = Math.min(status.bytes_done, status.bytes_total);
  }
  text.textContent = loadingText(status);
}

/** How far the server is with a run. */
export function loadingText(status: RunStatus): string {
  const size = `${formatBytes(status.bytes_done)} of ${formatBytes(status.bytes_total)}`;
  const isRead = status.bytes_total > 0 && status.bytes_done >= status.bytes_total;
  const doing = isRead ? 'sorting and looking for problems…' : size;
  return `${formatCount(status.events)} events, ${doing}`;
}
