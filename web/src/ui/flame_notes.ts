// What the flame graph's picture is of: its sum, what percents are of, what makes it uncertain,
// where the time went by reason, and the command line that shows the same.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { plural } from '../base/format';
import type { FlameDiffReply, FlameHead } from '../protocol/types';
import {
  flameName,
  flamePercent,
  flameReasons,
  type FlameTree,
  flameWeight,
  reasonOf,
  unwoundText,
} from '../model/flame';

const FEW_SAMPLES = 20;

/** Of the trees that are shown, and what the sides of a difference are of; see FlameShown. */
export function flameNotes(
  trees: readonly FlameTree[],
  compared: string | null,
): (Node | null)[] {
  const tree = trees[0];
  if (!tree) return [];
  return tree.diff ? diffNotes(tree, compared) : treeNotes(tree, trees.length > 1);
}

const note = (text: string) => h('span', {}, text);

/** "2 s in 200 samples"; nothing recorded is no zero. */
const sumText = (of: FlameHead, weight: number | null, count: number): string =>
  weight === null ? 'unknown' : `${flameWeight(of, weight)} in ${plural(count, of.counts)}`;

function treeNotes(tree: FlameTree, isButterfly: boolean): (Node | null)[] {
  const { reply } = tree;
  const { total, whole } = reply;
  const sum = sumText(reply, total, reply.count);
  const isPart = total !== null && whole !== null && whole !== total;
  const share = isPart ? `, ${flamePercent(reply, total)}` : '';
  const ofAll = isPart ? `100 % is all of it, ${flameWeight(reply, whole)}` : '';
  const isRough = reply.count > 0 && reply.count < FEW_SAMPLES;
  const lacking = reply.nodes_left_out;
  return [
    h('b', {}, `${reply.title}: ${sum}${share}`),
    note(reply.count === 0 ? '' : ofAll || 'percents are of this sum, zoomed or not'),
    reply.uncertain ? h('span', { class: 'badge warning' }, 'figures uncertain') : null,
    isRough ? note('so few that shares are rough') : null,
    ...reasonKey(tree, isButterfly),
    note(reply.count === 0 ? '' : unwoundText(reply)),
    lacking > 0 ? note(`the ${plural(lacking, 'lightest frame')} left out`) : null,
    reply.count > 0 && reply.commands ? commandLines(reply.commands) : null,
    moreNotes(reply.count === 0 ? [] : reply.notes),
  ];
}

function diffNotes(tree: FlameTree, compared: string | null): (Node | null)[] {
  const { diff } = tree;
  if (!diff) return [];
  const side = (at: 0 | 1) => sumText(diff, diff.whole[at], diff.count[at]);
  return [
    h('b', {}, `${diff.title}: ${side(0)} before → ${side(1)} now`),
    compared === null ? null : h('span', { class: 'compared' }, compared),
    emptySide(diff),
    ...diff.notes_compared.map((text) => h('span', { class: 'compared' }, text)),
    diff.uncertain ? h('span', { class: 'badge warning' }, 'figures uncertain') : null,
    note('percents are of each side’s own sum; a frame is as wide as the mean of both'),
    key('change-more', 'more'),
    key('change-less', 'less'),
    diff.nodes_left_out > 0
      ? note(`the ${plural(diff.nodes_left_out, 'lightest frame')} left out`)
      : null,
    moreNotes([...diff.notes, ...diff.notes_before.map((text) => `before: ${text}`)]),
  ];
}

/** A side that has nothing is no finding: perhaps it wasn't recorded there. */
function emptySide({ count, counts }: FlameDiffReply): Node | null {
  if ((count[0] === 0) === (count[1] === 0)) return null;
  const text =
    count[0] === 0
      ? `no ${counts}s before: all counts as new`
      : `no ${counts}s now: all counts as gone`;
  return h('span', { class: 'badge warning' }, text);
}

/** One is shown; more are behind a click, so that there is room for the picture. */
function moreNotes(notes: readonly string[]): Node | null {
  if (notes.length <= 1) return notes[0] === undefined ? null : note(notes[0]);
  const list = h('ul', {}, ...notes.map((text) => h('li', {}, text)));
  return h('details', {}, h('summary', {}, `${notes.length} notes`), list);
}

const key = (name: string, text: string) =>
  h('span', { class: 'flame-key' }, h('i', { class: name }), text);

/** The frames next to the root that are reasons, with their shares. */
function reasonKey(tree: FlameTree, isButterfly: boolean): Node[] {
  if (isButterfly) return [];
  const reasons = flameReasons(tree);
  return (tree.children[0] ?? []).flatMap((node) => {
    const name = flameName(tree.reply, node);
    const reason = reasons[node];
    if (!reason || reasonOf(name) === null) return [];
    const weight = tree.reply.nodes[node]?.total ?? 0;
    const text = name.replace(/^\[(blocked: )?/, '').replace(/\]$/, '');
    return [key(`reason-${reason}`, `${text} ${flamePercent(tree.reply, weight)}`)];
  });
}

function commandLines(commands: readonly string[]): Node | null {
  if (commands.length === 0) return null;
  const text = commands.join('\n');
  const copy = h('button', { class: 'link', title: text }, 'copy as a command');
  copy.addEventListener('click', () => {
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('none'));
    copied.then(
      () => (copy.textContent = 'copied'),
      () => copy.replaceWith(h('code', { class: 'command' }, text)),
    );
  });
  return copy;
}
