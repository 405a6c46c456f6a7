// What was lost, apart from what was never recorded because recording was off. Pure.
// SPDX-License-Identifier: Apache-2.0
import { formatCount, formatDuration, formatShare, plural } from '../base/format';
import type { Loss, Summary } from '../protocol/types';

/** The cause of a stretch in which recording was off: no event was lost in it. */
const RECORDING_OFF = 'recording_off';

export const isOff = (loss: Loss): boolean => loss.cause === RECORDING_OFF;

type LossFacts = Pick<Summary, 'loss' | 'loss_total' | 'loss_at_least' | 'left_out'>;

/** "68 events"; of a trace that ended early what was read of it is a lower bound. */
export function eventsText({ events, truncated }: Pick<Summary, 'events' | 'truncated'>): string {
  return `${truncated === null ? '' : 'at least '}${plural(events, 'event')}`;
}

/**
 * How long a worker was inside polls, "42 % busy". Polls that were lost, or that the end of a cut
 * trace lacks, would add to it; of a time of which the end isn't known there is no share.
 */
export function busyText(
  busyNs: number,
  { truncated, loss, duration_ns: whole }: Pick<Summary, 'truncated' | 'loss' | 'duration_ns'>,
): string {
  if (truncated !== null) return `busy for ${formatDuration(busyNs)} at least`;
  const share = formatShare(whole > 0 ? busyNs / whole : null);
  return `${loss.length === 0 ? '' : 'at least '}${share} busy`;
}

/** "recording was off for 3 s", or null where it never was. */
export function offText({ loss, left_out: leftOut }: Pick<Summary, 'loss' | 'left_out'>) {
  const off = loss.filter(isOff);
  if (off.length === 0) return null;
  const length = off.reduce((sum, { first_ns: first, last_ns: last }) => sum + last - first, 0);
  const isWhole = (leftOut['loss'] ?? 0) === 0;
  return `recording was off for ${isWhole ? '' : 'at least '}${formatDuration(length)}`;
}

/** What a reader must know of it before believing the picture: a sentence each. */
export function lossSentences(summary: LossFacts): string[] {
  const { loss, loss_total: total, loss_at_least: lost } = summary;
  const out: string[] = [];
  const lossy = loss.filter((entry) => !isOff(entry));
  if (lost !== 0 || lossy.length !== 0) {
    const causes = [...new Set(lossy.map((entry) => entry.cause))].slice(0, 4).join(', ');
    const some = `An unknown number${lost === 0 ? '' : ` (at least ${formatCount(lost)})`} of`;
    const count = total === null ? some : formatCount(lost);
    const why = causes === '' ? '' : ` (${causes})`;
    out.push(`${count} events were lost${why}; those times are hatched.`);
  }
  const off = offText(summary);
  if (off !== null) {
    out.push(`R${off.slice(1)}: nothing is known of that time, which is hatched.`);
  }
  return out;
}
