// The panels at the side as tabs: findings, details, task, recorder.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { formatCount } from '../base/format';
import type { Panel } from '../model/url_state';
import type { ViewerStore } from '../store/viewer_store';
import { detailsPanel } from '../ui/details_panel';
import { findingsPanel } from '../ui/findings_panel';
import { recorderPanel } from '../ui/recorder_panel';
import { taskPanel } from '../ui/task_panel';

const TABS: readonly [Panel, string][] = [
  ['findings', 'Findings'],
  ['details', 'Details'],
  ['task', 'Task'],
  ['recorder', 'Recorder'],
];

export function sidePanel(store: ViewerStore): HTMLElement {
  const bodies: Record<Panel, HTMLElement> = {
    findings: findingsPanel(store),
    details: detailsPanel(store),
    task: taskPanel(store),
    recorder: recorderPanel(store.summary),
  };
  const tabs = new Map<Panel, HTMLElement>();
  const panels = new Map<Panel, HTMLElement>();
  const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'panels' });
  for (const [name, label] of TABS) {
    const tab = h(
      'button',
      {
        role: 'tab',
        id: `tab-${name}`,
        'aria-controls': `panel-${name}`,
        on: { click: () => store.panel.set(name) },
      },
      label,
    );
    tabs.set(name, tab);
    list.append(tab);
    const attributes = { class: 'panel', role: 'tabpanel', id: `panel-${name}`, tabindex: 0 };
    panels.set(name, h('div', { ...attributes, 'aria-labelledby': `tab-${name}` }, bodies[name]));
  }
  list.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    const at = TABS.findIndex(([name]) => name === store.panel.value);
    const next = TABS[(at + step + TABS.length) % TABS.length]?.[0] ?? 'findings';
    store.panel.set(next);
    tabs.get(next)?.focus();
  });
  store.panel.watch((shown) => {
    for (const [name, tab] of tabs) {
      tab.setAttribute('aria-selected', name === shown ? 'true' : 'false');
      tab.setAttribute('tabindex', name === shown ? '0' : '-1');
      panels.get(name)?.classList.toggle('hidden', name !== shown);
    }
  });
  store.findings.watch((found) => {
    const tab = tabs.get('findings');
    if (tab && found) tab.textContent = `Findings (${formatCount(found.total)})`;
  });
  store.task.watch((task) => {
    const tab = tabs.get('task');
    if (tab) tab.textContent = task === null ? 'Task' : `Task ${task}`;
  });
  return h(
    'aside',
    { class: 'side', 'aria-label': 'findings and details' },
    list,
    ...panels.values(),
  );
}
