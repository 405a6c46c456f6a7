// The list of runs under the served directory, newest first.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatBytes, formatCount } from '../base/format';
import type { Signal } from '../base/signal';
import { EMPTY, formatUrl } from '../model/url_state';
import type { Client } from '../protocol/client';
import type { RunEntry, RunList } from '../protocol/types';
import type { Theme } from '../store/theme';
import { themeButton } from '../ui/theme_button';

export async function showRuns(
  root: HTMLElement,
  client: Client,
  theme: Signal<Theme>,
  signal: AbortSignal,
): Promise<void> {
  document.title = 'dial9: runs';
  const body = h('div', { class: 'inner' }, h('p', { role: 'status' }, 'Looking for runs…'));
  const bar = h(
    'header',
    { class: 'topbar' },
    h('span', { class: 'brand' }, 'dial', h('b', {}, '9')),
    h('span', { class: 'spacer' }),
    themeButton(theme),
  );
  replaceChildren(root, bar, h('main', { class: 'runs' }, body));
  const list = await client.runs(signal);
  replaceChildren(body, ...content(list));
}

function content(list: RunList): (Node | null)[] {
  const title = h('h1', {}, `Runs in ${list.root}`);
  if (list.runs.length === 0) {
    const hint =
      'No trace files here yet. A recorder writes into a directory of its own below this one; ' +
      'files that end in .bin or .bin.gz are found too. Reload when there is one.';
    return [title, h('p', { class: 'soft' }, hint)];
  }
  const count = list.truncated
    ? `The newest ${formatCount(list.runs.length)} of ${formatCount(list.total)} runs.`
    : `${formatCount(list.total)} in all, newest first. Times are UTC.`;
  const head = ['Run', 'Last written', 'Files', 'Size', 'State'].map((name, column) =>
    h('th', { scope: 'col', class: column === 2 || column === 3 ? 'number' : '' }, name),
  );
  const rows = list.runs.map(rowOf);
  const table = h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows));
  return [title, h('p', { class: 'soft' }, count), table];
}

function rowOf(run: RunEntry): Node {
  const link = h('a', { href: formatUrl({ ...EMPTY, run: run.run }) }, run.name);
  const base = run.is_base ? h('span', { class: 'tag' }, 'base') : null;
  const when = new Date(run.modified_ms).toISOString().replace('T', ' ').slice(0, 19);
  return h(
    'tr',
    {},
    h('td', {}, link, ' ', base),
    h('td', {}, when),
    h('td', { class: 'number' }, formatCount(run.files)),
    h('td', { class: 'number' }, formatBytes(run.bytes)),
    h('td', {}, stateOf(run)),
  );
}

/** A segment that isn't sealed looks the same while its process lives and after it died. */
function stateOf({ is_sealed: isSealed }: RunEntry): Node | string {
  if (isSealed === null) return 'not known: a single file';
  if (isSealed) return 'sealed';
  return h('span', { class: 'tag' }, 'being written, or left by one that died');
}
