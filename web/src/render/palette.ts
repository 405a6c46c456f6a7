// The page's colours as renderers need them: CSS strings, and packed pixels for rasters. Read from
// the custom properties of styles.css whenever the theme changes.
// SPDX-License-Identifier: Apache-2.0

import type { FlameReason } from '../model/flame';

export interface Paint {
  css: string;
  /** as a Uint32 of ImageData on a little-endian machine: AABBGGRR */
  pixel: number;
  /** black or white, whichever reads better on it */
  ink: string;
}

export interface Palette {
  bg: Paint;
  raised: Paint;
  line: Paint;
  lineSoft: Paint;
  text: Paint;
  textSoft: Paint;
  lane: Paint;
  laneAlt: Paint;
  polls: Paint[];
  pollDim: Paint;
  park: Paint;
  wait: Paint;
  queue: Paint;
  queueFill: Paint;
  spans: Paint[];
  spanText: Paint;
  custom: Paint;
  loss: Paint;
  stall: Paint;
  miniBusy: Paint;
  miniMax: Paint;
  info: Paint;
  warning: Paint;
  critical: Paint;
  selection: Paint;
  /** of waits by reason */
  reasons: Record<NonNullable<FlameReason>, Paint>;
  changeMore: Paint;
  changeLess: Paint;
  shade: string;
}

/** Polls of at least so many ns get the next colour of the ramp. */
export const POLL_STEPS_NS: readonly number[] = [1e4, 1e5, 1e6, 1e7, 1e8];

/** Which colour of the ramp a poll of this length has. */
export function pollStep(durationNs: number): number {
  let step = 0;
  while (step < POLL_STEPS_NS.length && durationNs >= (POLL_STEPS_NS[step] ?? 0)) step += 1;
  return step;
}

/** "#rrggbb" as a paint. */
export function paint(css: string): Paint {
  const text = css.trim();
  const rgb = Number.parseInt(text.slice(1, 7), 16);
  const red = (rgb >> 16) & 255;
  const green = (rgb >> 8) & 255;
  const blue = rgb & 255;
  const luminance = luma(red) * 0.2126 + luma(green) * 0.7152 + luma(blue) * 0.0722;
  const ink = luminance > 0.179 ? '#000000' : '#ffffff';
  return { css: text, ink, pixel: ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0 };
}

/** From `from` (0) to `to` (1). */
export function mix(from: Paint, to: Paint, share: number): Paint {
  const channel = (at: number) => {
    const [a, b] = [from, to].map(({ css }) => Number.parseInt(css.slice(at, at + 2), 16));
    return Math.round((a ?? 0) + ((b ?? 0) - (a ?? 0)) * share).toString(16).padStart(2, '0');
  };
  return paint(`#${channel(1)}${channel(3)}${channel(5)}`);
}

/** Of an sRGB channel: linear light (WCAG 2). */
function luma(channel: number): number {
  const share = channel / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}

export function readPalette(root: HTMLElement): Palette {
  const style = getComputedStyle(root);
  const get = (name: string) => paint(style.getPropertyValue(`--${name}`));
  const ramp = (name: string) => [0, 1, 2, 3, 4, 5].map((step) => get(`${name}-${step}`));
  return {
    bg: get('bg'),
    raised: get('bg-raised'),
    line: get('line'),
    lineSoft: get('line-soft'),
    text: get('text'),
    textSoft: get('text-soft'),
    lane: get('lane'),
    laneAlt: get('lane-alt'),
    polls: ramp('poll'),
    pollDim: get('poll-dim'),
    park: get('park'),
    wait: get('wait'),
    queue: get('queue'),
    queueFill: get('queue-fill'),
    spans: ramp('span'),
    spanText: get('span-text'),
    custom: get('custom'),
    loss: get('loss'),
    stall: get('stall'),
    miniBusy: get('mini-busy'),
    miniMax: get('mini-max'),
    info: get('info'),
    warning: get('warning'),
    critical: get('critical'),
    selection: get('selection'),
    reasons: {
      'on-cpu': get('reason-on-cpu'),
      lock: get('reason-lock'),
      socket: get('reason-socket'),
      disk: get('reason-disk'),
      timer: get('reason-timer'),
      events: get('reason-events'),
      other: get('reason-other'),
    },
    changeMore: get('change-more'),
    changeLess: get('change-less'),
    shade: style.getPropertyValue('--shade').trim(),
  };
}
