// What a user types to go to a moment: an offset ("+1.5s", "250ms"), a time of day of the trace's
// day ("13:50:02.25"), a date and time (UTC), or ns since 1970. Pure; null: this is no moment.
// SPDX-License-Identifier: Apache-2.0
import type { WallClock } from './wall';

const UNIT_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
  h: 3600e9,
};

export function parseMoment(text: string, clock: WallClock): number | null {
  const typed = text.trim();
  const offset = /^\+?(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)$/.exec(typed);
  if (offset) return Number(offset[1]) * (UNIT_NS[offset[2] ?? ''] ?? 1);
  if (/^\d{18,20}$/.test(typed)) return clock.moment(BigInt(typed));
  const date = /^(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?Z?$/.exec(
    typed,
  );
  return date ? wallMoment(date, clock) : null;
}

function wallMoment(match: RegExpExecArray, clock: WallClock): number | null {
  const start = clock.epoch(0);
  if (start === null) return null;
  const [, given, hours, minutes, seconds, fraction] = match;
  const day = given ?? new Date(Number(start / 1_000_000n)).toISOString().slice(0, 10);
  const ms = Date.parse(`${day}T${hours}:${minutes}:${seconds ?? '00'}Z`);
  if (Number.isNaN(ms)) return null;
  let epoch = BigInt(ms) * 1_000_000n + BigInt((fraction ?? '').padEnd(9, '0'));
  // A trace that passes midnight: a time of day before its start is meant on the day after.
  if (!given && epoch < start - 3_600_000_000_000n) epoch += 86_400_000_000_000n;
  return clock.moment(epoch);
}
