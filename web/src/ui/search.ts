// The search box: tasks, places, spans and event types, or a moment to go to. "/" focuses it,
// arrows choose, Enter goes, Escape leaves.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { formatCount } from '../base/format';
import { parseMoment } from '../model/goto';
import { isAbort } from '../protocol/client';
import type { SearchHit } from '../protocol/types';
import type { ViewerStore } from '../store/viewer_store';
import { momentText } from './facts';

const LIMIT = 50;
const PAUSE_MS = 150;

interface Choice {
  tag: string;
  text: string;
  go: () => void;
}

export function searchBox(store: ViewerStore): { element: HTMLElement; focus: () => void } {
  const list = h('div', {
    class: 'hits hidden',
    id: 'hits',
    role: 'listbox',
    'aria-label': 'hits',
  });
  const input = h('input', {
    type: 'search',
    placeholder: 'Search, or go to a time  ( / )',
    'aria-label': 'search tasks, places, spans and events, or go to a time',
    role: 'combobox',
    'aria-expanded': 'false',
    'aria-controls': 'hits',
    spellcheck: 'false',
  });
  let choices: Choice[] = [];
  let current = 0;
  let timer = 0;
  let controller = new AbortController();

  const close = () => {
    list.classList.add('hidden');
    input.setAttribute('aria-expanded', 'false');
    controller.abort();
  };
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    input.blur();
    choice.go();
  };
  const show = (note: string) => {
    const rows = choices.map((choice, index) =>
      h(
        'button',
        {
          role: 'option',
          tabindex: -1,
          'aria-selected': index === current ? 'true' : 'false',
          on: { mousedown: (event) => event.preventDefault(), click: () => choose(choice) },
        },
        h('span', { class: 'tag' }, choice.tag),
        h('span', { class: 'ellipsis' }, choice.text),
      ),
    );
    const text = h('div', { class: 'soft', role: 'option', 'aria-disabled': 'true' }, note);
    replaceChildren(list, ...rows, note === '' ? null : text);
    list.classList.remove('hidden');
    input.setAttribute('aria-expanded', 'true');
    list.querySelector("[aria-selected='true']")?.scrollIntoView({ block: 'nearest' });
  };
  const ask = async () => {
    controller.abort();
    controller = new AbortController();
    const text = input.value.trim();
    current = 0;
    choices = momentChoice(store, text);
    if (text === '') return close();
    try {
      const found = await store.client.search(store.run, text, LIMIT, controller.signal);
      choices.push(...found.hits.map((hit) => hitChoice(store, hit)));
      show(noteOf(found.total, found.hits.length, choices.length));
    } catch (error) {
      if (!isAbort(error)) show(error instanceof Error ? error.message : String(error));
    }
  };
  input.addEventListener('input', () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void ask(), PAUSE_MS);
  });
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      close();
      input.blur();
    } else if (event.key === 'Enter') {
      window.clearTimeout(timer);
      if (list.classList.contains('hidden')) void ask();
      else choose(choices[current]);
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      current = Math.min(Math.max(current + step, 0), Math.max(choices.length - 1, 0));
      show('');
    }
    event.stopPropagation();
  });
  return { element: h('div', { class: 'search' }, input, list), focus: () => input.select() };
}

function noteOf(total: number, shown: number, choices: number): string {
  if (choices === 0) return 'Nothing found';
  return total > shown ? `The first ${shown} of ${formatCount(total)}` : '';
}

function momentChoice(store: ViewerStore, text: string): Choice[] {
  const at = parseMoment(text, store.clock);
  if (at === null) return [];
  const go = () => {
    store.reveal(at);
    store.mark.set({ lane: null, start: at, end: at });
  };
  return [{ tag: 'time', text: momentText(store, at), go }];
}

function hitChoice(store: ViewerStore, hit: SearchHit): Choice {
  const go = () => {
    if (hit.at_ns !== null) store.reveal(hit.at_ns);
    if (hit.task !== null) store.selectTask(hit.task);
    else if (hit.index !== null && hit.what === 'span') {
      store.select({ what: 'spans', index: hit.index }, null);
    } else if (hit.index !== null) store.select({ what: 'events', index: hit.index }, null);
  };
  return { tag: hit.what, text: hit.text, go };
}
