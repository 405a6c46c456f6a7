// Chooses the page by the URL: the list of runs, a run that is being opened, or the viewer. A page
// that is left gives back its listeners.
// SPDX-License-Identifier: Apache-2.0
import { h, replaceChildren } from '../base/dom';
import { parseUrl } from '../model/url_state';
import { Client, isAbort } from '../protocol/client';
import { createTheme } from '../store/theme';
import { takeToken } from '../store/token';
import { ViewerStore } from '../store/viewer_store';
import { openRun } from './open_run';
import { showRuns } from './runs_page';
import { showViewer } from './viewer_page';

export function startApp(root: HTMLElement): void {
  const theme = createTheme(document.documentElement);
  const client = new Client(takeToken());
  let leave: () => void = () => undefined;
  let shown: string | null | undefined;

  const show = async () => {
    const { run } = parseUrl(location.hash);
    if (run === shown) return;
    leave();
    shown = run;
    const controller = new AbortController();
    leave = () => controller.abort();
    try {
      if (run === null) await showRuns(root, client, theme, controller.signal);
      else {
        const summary = await openRun(root, client, run, controller.signal);
        if (controller.signal.aborted) return;
        const stop = showViewer(root, new ViewerStore(client, run, summary), theme);
        leave = () => {
          controller.abort();
          stop();
        };
      }
    } catch (error) {
      if (!isAbort(error) && !controller.signal.aborted) showError(root, error, retry);
    }
  };
  const retry = () => {
    shown = undefined;
    void show();
  };
  window.addEventListener('hashchange', () => void show());
  void show();
}

function showError(root: HTMLElement, error: unknown, retry: () => void): void {
  const message = error instanceof Error ? error.message : String(error);
  document.title = 'dial9: error';
  replaceChildren(
    root,
    h(
      'main',
      { class: 'center', role: 'alert' },
      h('h1', {}, 'This did not work'),
      h('p', {}, message),
      h(
        'div',
        { class: 'buttons' },
        h('button', { on: { click: retry } }, 'Try again'),
        h('button', { on: { click: () => (location.hash = '') } }, 'All runs'),
      ),
    ),
  );
}
