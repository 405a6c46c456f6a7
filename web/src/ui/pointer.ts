// Wheel, drag and click over a strip of time, as intents: zoom around a moment, move, measure,
// hover, choose. Works with mouse, pen and touch (pointer events); what the intents do is the
// page's matter.
// SPDX-License-Identifier: Apache-2.0

export interface PointerIntents {
  /** `factor` below 1 zooms in; x in CSS pixels from the strip's left */
  zoom: (factor: number, x: number) => void;
  /** by so many CSS pixels, to the right if positive */
  pan: (dx: number) => void;
  scroll: (dy: number) => void;
  measure: (fromX: number, toX: number) => void;
  hover: (x: number, y: number, event: PointerEvent) => void;
  leave: () => void;
  choose: (x: number, y: number) => void;
  open: (x: number, y: number) => void;
}

const CLICK_SLACK_PX = 3;
const ZOOM_PER_PX = 0.0032;
/** A wheel that is turned fast zooms no further than this at once. */
const MOST_WHEEL_PX = 240;
const LINE_PX = 30;

/** Two fingers' distance, or null with fewer. */
function spread(
  points: Map<number, { x: number; y: number }>,
): { distance: number; middle: number } | null {
  const [a, b] = [...points.values()];
  return a && b ? { distance: Math.abs(a.x - b.x), middle: (a.x + b.x) / 2 } : null;
}

export function listenToPointer(
  strip: HTMLElement,
  intents: PointerIntents,
  signal: AbortSignal,
): void {
  new PointerStrip(strip, intents).listen(signal);
}

class PointerStrip {
  private readonly points = new Map<number, { x: number; y: number }>();
  private startX = 0;
  private startY = 0;
  private hasMoved = false;
  private isMeasuring = false;

  constructor(
    private readonly strip: HTMLElement,
    private readonly intents: PointerIntents,
  ) {}

  listen(signal: AbortSignal): void {
    const { strip, intents } = this;
    strip.addEventListener('wheel', (event) => this.wheel(event), { passive: false, signal });
    strip.addEventListener('pointerdown', (event) => this.press(event), { signal });
    strip.addEventListener('pointermove', (event) => this.move(event), { signal });
    strip.addEventListener('pointerup', (event) => this.release(event), { signal });
    strip.addEventListener('pointercancel', (event) => this.release(event), { signal });
    strip.addEventListener('pointerleave', () => intents.leave(), { signal });
    strip.addEventListener(
      'dblclick',
      (event) => {
        const { x, y } = this.at(event);
        intents.open(x, y);
      },
      { signal },
    );
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const box = this.strip.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private wheel(event: WheelEvent): void {
    const { intents } = this;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    event.preventDefault();
    if (event.shiftKey && !event.ctrlKey) intents.pan(-(dy || dx));
    else if (event.altKey) intents.scroll(dy);
    else if (Math.abs(dx) > Math.abs(dy)) intents.pan(-dx);
    else {
      const turn = Math.max(Math.min(dy, MOST_WHEEL_PX), -MOST_WHEEL_PX);
      intents.zoom(Math.exp(turn * ZOOM_PER_PX), this.at(event).x);
    }
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.strip.setPointerCapture(event.pointerId);
    const place = this.at(event);
    this.points.set(event.pointerId, place);
    if (this.points.size > 1) return;
    this.startX = place.x;
    this.startY = place.y;
    this.hasMoved = false;
    this.isMeasuring = event.shiftKey;
  }

  private move(event: PointerEvent): void {
    const { intents, points, startX } = this;
    const place = this.at(event);
    const before = points.get(event.pointerId);
    if (!before) {
      intents.hover(place.x, place.y, event);
      return;
    }
    const pinch = spread(points);
    points.set(event.pointerId, place);
    const way = Math.hypot(place.x - startX, place.y - this.startY);
    if (way > CLICK_SLACK_PX) this.hasMoved = true;
    if (!this.hasMoved) return;
    const pinched = spread(points);
    if (pinch && pinched) {
      const factor = Math.max(pinch.distance, 20) / Math.max(pinched.distance, 20);
      intents.zoom(factor, pinched.middle);
    } else if (this.isMeasuring) {
      intents.measure(Math.min(startX, place.x), Math.max(startX, place.x));
    } else {
      intents.pan(place.x - before.x);
      if (event.pointerType !== 'mouse') intents.scroll(before.y - place.y);
    }
  }

  private release(event: PointerEvent): void {
    const wasDown = this.points.delete(event.pointerId);
    const isClick = wasDown && this.points.size === 0 && !this.hasMoved;
    if (isClick && event.type === 'pointerup') this.intents.choose(this.startX, this.startY);
  }
}
