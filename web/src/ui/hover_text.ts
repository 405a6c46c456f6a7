// What the box beside the pointer says, from what lies under it. Pure.
// SPDX-License-Identifier: Apache-2.0
import {
  formatCount,
  formatDuration,
  formatRange,
  formatShare,
  formatValue,
  plural,
  shortPlace,
} from '../base/format';
import { isOff } from '../model/loss';
import type { Loss, Stall } from '../protocol/types';
import type { TooltipText } from './tooltip';

export interface HoverFacts {
  at?: number;
  slice?: {
    kind: number;
    dur: number;
    task: string | null;
    place: string | null;
    isOpen: boolean;
  };
  bin?: { polls: number; share: number; maxdur: number; dur: number };
  span?: { name: string | null; dur: number; isOpen: boolean; isUncompleted: boolean };
  event?: { count: number; value: number | null };
  sample?: { count: number };
  queue?: { min: number; max: number; last: number; at: number | null };
}

const lostCount = (count: number | null) =>
  count === null ? 'an unknown number of events' : plural(count, 'event');

/** Which events were lost at a moment, or that recording was off; give or take `slackNs`. */
export function lossLines(losses: readonly Loss[], at: number, slackNs: number): string[] {
  const here = losses.filter(
    (loss) => loss.first_ns - slackNs <= at && at <= loss.last_ns + slackNs,
  );
  const line = (loss: Loss) => {
    const length = formatDuration(loss.last_ns - loss.first_ns);
    return isOff(loss)
      ? `recording was off here, for ${length}`
      : `${lostCount(loss.count)} lost here: ${loss.cause}, over ${length}`;
  };
  return here.slice(0, 3).map(line);
}

/** The lines that say what the platform did at a moment, give or take `slackNs`. */
export function stallLines(stalls: readonly Stall[], at: number, slackNs: number): string[] {
  const here = stalls.filter(
    (stall) => stall.begin_ns - slackNs <= at && at <= stall.end_ns + slackNs,
  );
  const line = ({ text, stalled_ns: stalled, begin_ns: begin, end_ns: end }: Stall) =>
    stalled === null
      ? `platform: ${text}`
      : `platform: ${text}, up to ${formatDuration(stalled)} of ${formatDuration(end - begin)}`;
  return here.slice(0, 3).map(line);
}

/**
 * `where`: the row's label; `when`: the moment in wall time; `unit`: that of the row's values.
 * Null: nothing to say.
 */
export function hoverText(
  facts: HoverFacts,
  where: string,
  when: string,
  unit: string | null = null,
): TooltipText | null {
  if (facts.slice) return sliceText(facts.slice, where, when);
  if (facts.bin) {
    const { polls, share, maxdur, dur } = facts.bin;
    const starts = polls === 1 ? 'starts' : 'start';
    const title = `${plural(polls, 'poll')} ${starts} within ${formatDuration(dur)}`;
    const longest = `longest ${formatDuration(maxdur)}, ${formatShare(Math.min(share, 1))} busy`;
    return { title, lines: [longest, `${where}, ${when}`] };
  }
  if (facts.span) {
    const { name, dur, isOpen, isUncompleted } = facts.span;
    const note = isOpen ? ', not finished in this trace' : isUncompleted ? ', not completed' : '';
    return { title: name ?? 'span without a name', lines: [formatDuration(dur) + note, when] };
  }
  if (facts.event) {
    const { count, value } = facts.event;
    const lines = value === null ? [when] : [`value ${formatValue(value, unit)}`, when];
    return { title: count > 1 ? `${formatCount(count)} × ${where}` : where, lines };
  }
  if (facts.sample) {
    const { count } = facts.sample;
    const title = count === 1 ? 'A sample of this thread' : `${formatCount(count)} samples`;
    return { title, lines: ['click for the call stack', `${where}, ${when}`] };
  }
  if (facts.queue) {
    const { min, max, last } = facts.queue;
    const range = min === max ? [] : [`${formatRange(min, max, unit)} here`];
    return { title: `${where}: ${formatValue(last, unit)}`, lines: [...range, when] };
  }
  return null;
}

function sliceText(
  slice: NonNullable<HoverFacts['slice']>,
  where: string,
  when: string,
): TooltipText {
  const open = slice.isOpen ? ', still going when the trace ends' : '';
  if (slice.kind !== 0) {
    const title = slice.kind === 1 ? 'Parked' : 'Kernel wait: runnable, not running';
    return { title, lines: [formatDuration(slice.dur) + open, `${where}, ${when}`] };
  }
  const title = slice.place ? shortPlace(slice.place) : 'Poll';
  const task = slice.task === null ? 'task unknown' : `task ${slice.task}`;
  return { title, lines: [`${formatDuration(slice.dur)}${open}, ${task}`, `${where}, ${when}`] };
}
