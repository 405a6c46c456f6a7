// A list of any length in a fixed number of elements: rows that aren't in sight don't exist.
// Pages of rows are fetched when they come into sight.
// SPDX-License-Identifier: Apache-2.0
import { h } from '../base/dom';

const MARGIN_ROWS = 8;
/** Browsers can't lay out much higher elements; longer lists are scaled. */
const MOST_PX = 8_000_000;

export interface ListSource<T> {
  total: number;
  pageSize: number;
  load: (page: number) => Promise<T[]>;
  draw: (row: T, index: number) => HTMLElement;
  rowPx: number;
  label: string;
}

type Page<T> = T[] | 'loading' | 'failed';

/** One stop of the Tab key; arrows, Page Up and Down, Home and End go from row to row. */
export class VirtualList<T> {
  readonly element: HTMLElement;
  private readonly pages = new Map<number, Page<T>>();
  private readonly drawn = new Map<number, { of: T | string; element: HTMLElement }>();
  private readonly content = h('div', { role: 'list' });

  constructor(private readonly source: ListSource<T>) {
    this.element = h('div', {
      class: 'vlist',
      tabindex: 0,
      role: 'region',
      'aria-label': source.label,
    });
    this.content.style.height = `${Math.min(source.total * source.rowPx, MOST_PX)}px`;
    this.content.style.position = 'relative';
    this.element.append(this.content);
    this.element.addEventListener('scroll', () => this.scrolled());
    this.element.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Puts rows in that are known already. */
  seed(page: number, rows: T[]): void {
    this.pages.set(page, rows);
    this.draw();
  }

  /** Brings a row to the top. */
  scrollTo(index: number): void {
    this.element.scrollTop = index * this.pxPerRow();
    this.draw();
  }

  private pxPerRow(): number {
    const { total, rowPx } = this.source;
    return total === 0 ? rowPx : Math.min(rowPx, MOST_PX / total);
  }

  private scrolled(): void {
    for (const [page, rows] of this.pages) if (rows === 'failed') this.pages.delete(page);
    this.draw();
  }

  private draw(): void {
    const { total, rowPx } = this.source;
    const top = this.element.scrollTop;
    const start = top / this.pxPerRow();
    const first = Math.max(Math.floor(start) - MARGIN_ROWS, 0);
    const visible = Math.ceil(this.element.clientHeight / rowPx) + 2 * MARGIN_ROWS;
    const last = Math.min(first + visible, total);
    for (const [index, { element }] of this.drawn) {
      if (index < first || index >= last) this.remove(index, element);
    }
    let next = this.content.firstChild;
    for (let index = first; index < last; index += 1) {
      const element = this.rowAt(index);
      element.style.top = `${top + (index - start) * rowPx}px`;
      element.style.height = `${rowPx}px`;
      if (next && next.parentNode === null) next = element; // it took the place of that
      // What is there already stays in its place: moved, it would lose the focus.
      if (element === next) next = element.nextSibling;
      else this.content.insertBefore(element, next);
    }
  }

  private rowAt(index: number): HTMLElement {
    const { pageSize, draw } = this.source;
    const page = Math.floor(index / pageSize);
    if (!this.pages.has(page)) this.load(page);
    const loaded = this.pages.get(page);
    const row = Array.isArray(loaded) ? loaded[index - page * pageSize] : undefined;
    const of = row ?? (loaded === 'failed' ? 'could not be loaded: scroll to try again' : '…');
    const old = this.drawn.get(index);
    if (old?.of === of) return old.element;
    const attributes = { class: 'vitem soft pad', role: 'listitem' };
    const element = row === undefined ? h('div', attributes, String(of)) : draw(row, index);
    const isFocused = old?.element.contains(document.activeElement) ?? false;
    if (old) old.element.replaceWith(element);
    element.dataset['index'] = String(index);
    this.drawn.set(index, { of, element });
    if (isFocused) this.focusRow(index);
    return element;
  }

  /** The list keeps the focus of a row that goes. */
  private remove(index: number, element: HTMLElement): void {
    const isFocused = element.contains(document.activeElement);
    element.remove();
    this.drawn.delete(index);
    if (isFocused) this.element.focus({ preventScroll: true });
  }

  private load(page: number): void {
    this.pages.set(page, 'loading');
    this.source.load(page).then(
      (rows) => this.seed(page, rows),
      () => {
        this.pages.set(page, 'failed');
        this.draw();
      },
    );
  }

  private key(event: KeyboardEvent): void {
    const { total, rowPx } = this.source;
    const screen = Math.max(Math.floor(this.element.clientHeight / rowPx) - 1, 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: screen,
      PageUp: -screen,
      Home: -total,
      End: total,
    };
    const step = steps[event.key];
    if (step === undefined || total === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const item = document.activeElement?.closest<HTMLElement>('[data-index]');
    const above = Math.ceil(this.element.scrollTop / this.pxPerRow()) - 1;
    const from = item ? Number(item.dataset['index']) : above;
    const to = Math.min(Math.max(from + step, 0), total - 1);
    this.reveal(to);
    this.focusRow(to);
  }

  private reveal(index: number): void {
    const px = this.pxPerRow();
    const { scrollTop, clientHeight } = this.element;
    const rows = clientHeight / this.source.rowPx;
    if (index < scrollTop / px) this.element.scrollTop = index * px;
    else if (index + 1 > scrollTop / px + rows) this.element.scrollTop = (index + 1 - rows) * px;
    this.draw();
  }

  /** A row that is still asked for has nothing to press: it has the focus itself till then. */
  private focusRow(index: number): void {
    const element = this.drawn.get(index)?.element;
    const target = element?.querySelector<HTMLElement>('button') ?? element;
    if (!target) return;
    if (target === element) target.tabIndex = -1;
    target.focus({ preventScroll: true });
  }
}
