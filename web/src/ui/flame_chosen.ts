// What the chosen frame of the flame graph is, and what can be done with it.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { flameFacts, flameName, type FlameTree } from '../model/flame';
import type { FlameFunction } from '../model/flame_choice';

export interface ChosenActions {
  /** null: this picture has no moments */
  moments: (() => void) | null;
  around: (of: FlameFunction) => void;
}

export function flameChosen(tree: FlameTree, node: number, actions: ChosenActions): Node[] {
  const at = tree.reply.nodes[node]?.function ?? null;
  const of = at === null ? undefined : tree.reply.functions[at];
  const name = flameName(tree.reply, node);
  const out: Node[] = [
    h('code', { class: 'ellipsis', title: of?.module ? `${name} in ${of.module}` : name }, name),
    h('span', { class: 'soft' }, flameFacts(tree, node).join('; ')),
  ];
  if (of) {
    const click = () => actions.around({ name: of.name, module: of.module });
    out.push(h('button', { on: { click } }, 'Callers and callees'));
  }
  if (actions.moments) {
    out.push(h('button', { on: { click: actions.moments } }, 'Its moments on the timeline'));
  }
  return out;
}
