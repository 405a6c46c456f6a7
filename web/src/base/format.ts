// Numbers as people read them: durations, counts, bytes, wall time. Unknown (null, NaN) is shown as
// "unknown", never as zero; negative durations keep their sign. Pure functions.
// SPDX-License-Identifier: Apache-2.0

const UNITS: readonly [number, string][] = [
  [1e9 * 3600, 'h'],
  [1e9 * 60, 'min'],
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

/** "1.23 ms"; three significant digits unless `digits` says otherwise. */
export function formatDuration(ns: number | null | undefined, digits = 3): string {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return 'unknown';
  const size = Math.abs(ns);
  for (const [unit, name] of UNITS) {
    if (size >= unit * 0.9995) return `${trimZeros((ns / unit).toPrecision(digits))} ${name}`;
  }
  return `${trimZeros(ns.toPrecision(digits))} ns`;
}

function trimZeros(text: string): string {
  if (text.includes('e')) return String(Number(text));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** "1,234,567" with a plain comma in every locale, since screenshots and links are shared. */
export function formatCount(n: number | null | undefined): string {
  if (n === null || n === undefined || Number.isNaN(n)) return 'unknown';
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** A unit as the trace writes it, as people read it. */
export const unitName = (unit: string) => (unit === 'us' ? 'µs' : unit);

const NS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

/** A number of an event as people read it, by the unit that the trace has for it. */
export function formatValue(value: number, unit: string | null, digits = 3): string {
  const ns = NS[unit ?? ''];
  if (ns !== undefined) {
    return value === 0 ? `0 ${unitName(unit ?? '')}` : formatDuration(value * ns, digits);
  }
  if (unit === 'bytes') return formatBytes(value, digits);
  const text = Number.isInteger(value) ? formatCount(value) : String(Number(value.toPrecision(4)));
  return unit && unit !== 'count' ? `${text} ${unitName(unit)}` : text;
}

/** The ends of a scale, "32.6 ms to 1.02 s", with the digits that tell them apart. */
export function formatRange(least: number, most: number, unit: string | null): string {
  if (least === most) return formatValue(most, unit);
  for (let digits = 3; ; digits += 1) {
    const [low, high] = [formatValue(least, unit, digits), formatValue(most, unit, digits)];
    if (low !== high || digits === 9) return `${low} to ${high}`;
  }
}

/** "1 event", "7 events". */
export const plural = (n: number, noun: string) => `${formatCount(n)} ${noun}${n === 1 ? '' : 's'}`;

/** "3.24 MiB". */
export function formatBytes(bytes: number | null | undefined, digits = 3): string {
  if (bytes === null || bytes === undefined || Number.isNaN(bytes)) return 'unknown';
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let index = 0;
  while (Math.abs(value) >= 1024 && index < names.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${index === 0 ? value : trimZeros(value.toPrecision(digits))} ${names[index] ?? ''}`;
}

/** "12.3 %" of a share from 0 to 1. */
export function formatShare(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return 'unknown';
  if (share > 0 && share < 0.00005) return 'under 0.01 %'; // would read as none does
  return `${trimZeros((share * 100).toPrecision(3))} %`;
}

const pad = (n: number, width: number) => n.toString().padStart(width, '0');

/**
 * Wall time in UTC: "14:03:22.123456", with as many decimals of a second as `resolutionNs` needs
 * (none from one second up, nine below a microsecond).
 */
export function formatClock(epochNs: bigint, resolutionNs: number): string {
  const seconds = epochNs / 1_000_000_000n;
  let rest = epochNs % 1_000_000_000n;
  let whole = seconds;
  if (rest < 0n) {
    rest += 1_000_000_000n;
    whole -= 1n;
  }
  const date = new Date(Number(whole) * 1000);
  const text = `${pad(date.getUTCHours(), 2)}:${pad(date.getUTCMinutes(), 2)}:${pad(
    date.getUTCSeconds(),
    2,
  )}`;
  const decimals = clockDecimals(resolutionNs);
  return decimals === 0 ? text : `${text}.${pad(Number(rest), 9).slice(0, decimals)}`;
}

function clockDecimals(resolutionNs: number): number {
  if (resolutionNs >= 1e9) return 0;
  if (resolutionNs >= 1e6) return 3;
  return resolutionNs >= 1e3 ? 6 : 9;
}

/** "2026-06-22" of a wall time, UTC. */
export function formatDate(epochNs: bigint): string {
  return new Date(Number(epochNs / 1_000_000n)).toISOString().slice(0, 10);
}

/** The part of a source path that tells places apart: its last two components. */
export function shortPlace(place: string): string {
  const parts = place.split('/');
  return parts.length > 2 ? parts.slice(-2).join('/') : place;
}
