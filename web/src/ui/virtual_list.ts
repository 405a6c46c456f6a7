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

export class VirtualList<T> {
  readonly element: HTMLElement;
  private readonly pages = new Map<number, T[] | 'loading'>();
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
    this.element.addEventListener('scroll', () => this.draw());
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

  private draw(): void {
    const { total, rowPx, pageSize } = this.source;
    const top = this.element.scrollTop;
    const first = Math.max(Math.floor(top / this.pxPerRow()) - MARGIN_ROWS, 0);
    const visible = Math.ceil(this.element.clientHeight / rowPx) + 2 * MARGIN_ROWS;
    const last = Math.min(first + visible, total);
    const rows: HTMLElement[] = [];
    for (let index = first; index < last; index += 1) {
      const page = Math.floor(index / pageSize);
      const loaded = this.pages.get(page);
      if (loaded === undefined) this.load(page);
      const row = Array.isArray(loaded) ? loaded[index - page * pageSize] : undefined;
      if (row === undefined) continue;
      const element = this.source.draw(row, index);
      element.style.top = `${top + (index - top / this.pxPerRow()) * rowPx}px`;
      element.style.height = `${rowPx}px`;
      rows.push(element);
    }
    this.content.replaceChildren(...rows);
  }

  private load(page: number): void {
    this.pages.set(page, 'loading');
    this.source.load(page).then(
      (rows) => this.seed(page, rows),
      () => this.pages.delete(page),
    );
  }
}
