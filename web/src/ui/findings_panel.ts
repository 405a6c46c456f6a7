// The ranked list of findings. A click, Enter, j or k jumps to the place and selects the task.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatCount, formatDuration, plural } from '../base/format';
import { findingChoice } from '../model/flame_choice';
import type { Finding } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';

const MOST_SHOWN = 300;

export function findingsPanel(store: ViewerStore): HTMLElement {
  const list = h('div', {});
  const draw = () => {
    const found = store.findings.value;
    if (!found) {
      replaceChildren(list, h('p', { class: 'pad', role: 'status' }, 'Looking for problems…'));
      return;
    }
    if (found.findings.length === 0) {
      const { events, polls } = store.summary;
      const held = `${plural(events, 'event')}, ${plural(polls, 'poll')}`;
      const text = `Nothing was found in what this trace holds: ${held}.`;
      replaceChildren(list, h('p', { class: 'pad' }, text));
      return;
    }
    const shown = found.findings.slice(0, MOST_SHOWN);
    const more =
      found.total > shown.length
        ? h(
            'p',
            { class: 'pad soft' },
            `The worst ${shown.length} of ${formatCount(found.total)}.`,
          )
        : null;
    replaceChildren(list, ...shown.map((finding, index) => entry(store, finding, index)), more);
    mark();
  };
  const mark = () => {
    const current = store.finding.value;
    list.querySelectorAll('.finding').forEach((element, index) => {
      if (index === current) {
        element.setAttribute('aria-current', 'true');
        element.scrollIntoView({ block: 'nearest' });
      } else element.removeAttribute('aria-current');
      element.querySelector('.more')?.classList.toggle('hidden', index !== current);
    });
  };
  store.findings.watch(draw);
  store.finding.watch(mark);
  return list;
}

function entry(store: ViewerStore, finding: Finding, index: number): HTMLElement {
  const facts = [
    `${formatCount(finding.count)} ×`,
    finding.worst_ns === null ? null : `worst ${formatDuration(finding.worst_ns)}`,
  ].filter((text) => text !== null);
  const more = [
    finding.where ? `At ${finding.where}` : null,
    ...finding.evidence,
    finding.next ? `Next: ${finding.next}` : null,
  ].filter((text) => text !== null);
  const worker = store.summary.workers.find((one) => one.lane === finding.lane)?.worker ?? null;
  const flame = findingChoice(finding, worker);
  const open = () => flame && store.showFlame(flame);
  const label = `flame graph of this finding: ${finding.message}`;
  const opener = flame
    ? h('button', { class: 'small opener', title: label, on: { click: open } }, 'Flame graph')
    : null;
  const detail = h('ul', { class: 'more hidden' }, ...more.map((text) => h('li', {}, text)));
  const entry = h(
    'button',
    { class: `finding ${finding.severity}`, on: { click: () => store.openFinding(index) } },
    h(
      'span',
      { class: 'top' },
      h('span', { class: `badge ${finding.severity}` }, finding.severity),
      h('b', {}, finding.kind),
      h('span', { class: 'spacer' }),
      h('span', { class: 'soft' }, facts.join(', ')),
    ),
    h('span', {}, finding.message),
    more.length > 0 ? detail : null,
  );
  return h('div', { class: 'finding-entry' }, entry, opener);
}
