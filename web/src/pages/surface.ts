// A canvas that fills its parent at the screen's own resolution, and a frame to draw into it.
// SPDX-License-Identifier: Apache-2.0
import type { View } from '../model/view';
import type { Frame } from '../render/frame';
import type { Palette } from '../render/palette';

export class Surface {
  widthCss = 0;
  heightCss = 0;
  private ratio = 1;
  private readonly ctx: CanvasRenderingContext2D;

  constructor(readonly canvas: HTMLCanvasElement) {
    const ctx = canvas.getContext('2d', { alpha: false });
    if (!ctx) throw new Error('this browser has no 2D canvas');
    this.ctx = ctx;
  }

  /** Device pixels across. */
  get pixels(): number {
    return this.canvas.width;
  }

  /** Takes a size in CSS pixels; the canvas is cleared only when it really changes. */
  resize(widthCss: number, heightCss: number): void {
    this.ratio = window.devicePixelRatio || 1;
    this.widthCss = widthCss;
    this.heightCss = heightCss;
    const width = Math.max(Math.round(widthCss * this.ratio), 1);
    const height = Math.max(Math.round(heightCss * this.ratio), 1);
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.canvas.style.width = `${widthCss}px`;
    this.canvas.style.height = `${heightCss}px`;
  }

  frame(view: View, palette: Palette): Frame {
    const { ctx, ratio } = this;
    return { ctx, view, width: this.canvas.width, height: this.canvas.height, ratio, palette };
  }
}
