// Keys of the viewer: one table from key to action. Keys that are typed into a field, or with Ctrl,
// Alt or Meta, stay the browser's.
// SPDX-License-Identifier: Apache-2.0

export type Actions = Readonly<Record<string, (event: KeyboardEvent) => void>>;

export function listenToKeys(actions: Actions, signal: AbortSignal): void {
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      const isButton = event.target instanceof HTMLButtonElement;
      if (isButton && (event.key === 'Enter' || event.key === ' ')) return;
      if (inList(event.target) && event.key.startsWith('Arrow')) return;
      const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!action) return;
      event.preventDefault();
      action(event);
    },
    { signal },
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
}

/** Arrows scroll a list or move between tabs, where one has the focus. */
function inList(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('.vlist, [role="tablist"]') !== null;
}
