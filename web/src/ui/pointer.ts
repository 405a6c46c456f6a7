// Wheel, drag and click over a strip of time, as intents: zoom around a moment, move, measure, hover,
// choose. Works with mouse, pen and touch (pointer events); what the intents do is the page's matter.
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
const ZOOM_PER_PX = 0.0016;
const LINE_PX = 30;

/** Two fingers' distance, or null with fewer. */
function spread(points: Map<number, { x: number; y: number }>): { distance: number; middle: number } | null {
  const [a, b] = [...points.values()];
  return a && b ? { distance: Math.abs(a.x - b.x), middle: (a.x + b.x) / 2 } : null;
}

export function listenToPointer(strip: HTMLElement, intents: PointerIntents, signal: AbortSignal): void {
  const points = new Map<number, { x: number; y: number }>();
  let startX = 0;
  let startY = 0;
  let hasMoved = false;
  let isMeasuring = false;

  const at = (event: MouseEvent) => {
    const box = strip.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  strip.addEventListener(
    'wheel',
    (event) => {
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
      const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
      event.preventDefault();
      if (event.shiftKey && !event.ctrlKey) intents.pan(-(dy || dx));
      else if (event.altKey) intents.scroll(dy);
      else if (Math.abs(dx) > Math.abs(dy)) intents.pan(-dx);
      else intents.zoom(Math.exp(Math.max(Math.min(dy, 240), -240) * ZOOM_PER_PX * 2), at(event).x);
    },
    { passive: false, signal },
  );
  strip.addEventListener(
    'pointerdown',
    (event) => {
      if (event.button !== 0) return;
      strip.setPointerCapture(event.pointerId);
      const place = at(event);
      points.set(event.pointerId, place);
      if (points.size > 1) return;
      startX = place.x;
      startY = place.y;
      hasMoved = false;
      isMeasuring = event.shiftKey;
    },
    { signal },
  );
  strip.addEventListener(
    'pointermove',
    (event) => {
      const place = at(event);
      const before = points.get(event.pointerId);
      if (!before) return intents.hover(place.x, place.y, event);
      const pinch = spread(points);
      points.set(event.pointerId, place);
      if (Math.hypot(place.x - startX, place.y - startY) > CLICK_SLACK_PX) hasMoved = true;
      if (!hasMoved) return;
      const pinched = spread(points);
      if (pinch && pinched) {
        intents.zoom(Math.max(pinch.distance, 20) / Math.max(pinched.distance, 20), pinched.middle);
      } else if (isMeasuring) intents.measure(Math.min(startX, place.x), Math.max(startX, place.x));
      else {
        intents.pan(place.x - before.x);
        if (event.pointerType !== 'mouse') intents.scroll(before.y - place.y);
      }
    },
    { signal },
  );
  const end = (event: PointerEvent) => {
    const wasDown = points.delete(event.pointerId);
    if (wasDown && points.size === 0 && !hasMoved && event.type === 'pointerup') {
      intents.choose(startX, startY);
    }
  };
  strip.addEventListener('pointerup', end, { signal });
  strip.addEventListener('pointercancel', end, { signal });
  strip.addEventListener('pointerleave', () => intents.leave(), { signal });
  strip.addEventListener('dblclick', (event) => intents.open(at(event).x, at(event).y), { signal });
}
