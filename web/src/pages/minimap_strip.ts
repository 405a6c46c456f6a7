// The minimap with its brush: drag an edge or the inside, or draw a new part; arrows move it.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';
import { clamp, fitAll, timeToX, type View, xToTime } from '../model/view';
import { gripAt, type Grip, type Minimap, drawMinimap } from '../render/minimap';
import type { Palette } from '../render/palette';
import type { ViewerStore } from '../store/viewer_store';
import { Surface } from './surface';

const HEIGHT_PX = 52;
const GRIP_SLACK_PX = 6;
const LEAST_BRUSH_PX = 4;

export class MinimapStrip {
  readonly element: HTMLCanvasElement;
  private readonly surface: Surface;
  private grip: Grip | null = null;
  private from = 0;
  private viewAtStart: View;

  constructor(
    private readonly store: ViewerStore,
    signal: AbortSignal,
  ) {
    this.element = h('canvas', {
      class: 'minimap',
      role: 'img',
      'aria-label': 'the whole trace: how busy the workers were, long polls, loss, findings',
    });
    this.surface = new Surface(this.element);
    this.viewAtStart = store.view.value;
    this.element.addEventListener('pointerdown', (event) => this.press(event), { signal });
    this.element.addEventListener('pointermove', (event) => this.move(event), { signal });
    this.element.addEventListener('pointerup', (event) => this.release(event), { signal });
    this.element.addEventListener('dblclick', () => store.fit(), { signal });
  }

  resize(widthCss: number): void {
    this.surface.resize(widthCss, HEIGHT_PX);
  }

  draw(palette: Palette, data: Minimap | null): void {
    const frame = this.surface.frame(fitAll(this.store.durationNs), palette);
    drawMinimap(frame, data, this.store.durationNs, this.store.view.value);
  }

  private toTime(x: number): number {
    return xToTime(fitAll(this.store.durationNs), this.surface.widthCss, x);
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    const whole = fitAll(this.store.durationNs);
    const { view } = this.store;
    const left = timeToX(whole, this.surface.widthCss, view.value.start);
    const right = timeToX(whole, this.surface.widthCss, view.value.end);
    this.from = event.offsetX;
    this.viewAtStart = view.value;
    const isWhole = right - left > this.surface.widthCss - 2;
    this.grip = isWhole ? 'outside' : gripAt(event.offsetX, left, right, GRIP_SLACK_PX);
    this.store.jump(view.value);
  }

  private move(event: PointerEvent): void {
    if (!this.grip) return;
    const at = this.toTime(event.offsetX);
    const { start, end } = this.viewAtStart;
    const least = this.toTime(LEAST_BRUSH_PX) - this.toTime(0);
    if (this.grip === 'inside') {
      const by = at - this.toTime(this.from);
      this.set({ start: start + by, end: end + by });
    } else if (this.grip === 'left') this.set({ start: Math.min(at, end - least), end });
    else if (this.grip === 'right') this.set({ start, end: Math.max(at, start + least) });
    else {
      const from = this.toTime(this.from);
      if (Math.abs(event.offsetX - this.from) < LEAST_BRUSH_PX) return;
      this.set({ start: Math.min(from, at), end: Math.max(from, at) });
    }
  }

  /** A press outside without a drag moves the view there. */
  private release(event: PointerEvent): void {
    if (this.grip === 'outside' && Math.abs(event.offsetX - this.from) < LEAST_BRUSH_PX) {
      const half = (this.viewAtStart.end - this.viewAtStart.start) / 2;
      const at = this.toTime(event.offsetX);
      this.set({ start: at - half, end: at + half });
    }
    this.grip = null;
  }

  private set(view: View): void {
    this.store.view.set(clamp(view, this.store.durationNs));
  }
}
