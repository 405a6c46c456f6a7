// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { FLAME_CHOICE } from './flame_choice';
import { EMPTY, formatUrl, parseUrl, type UrlState } from './url_state';

it('restores every part of a view', () => {
  const state: UrlState = {
    run: 'sub/abcd-12 &=#',
    start: -1234.5,
    end: 9.87e12,
    task: '18446744073709551615',
    selection: { what: 'spans', index: 7 },
    spot: { lane: 3, at: 12.5 },
    panel: 'task',
    range: [-5, 1e9],
    folded: ['queues', 'spans'],
    pages: { spans: 4, workers: 1 },
    fields: { 'Order "x":1': 'amount, total' },
    scroll: 120,
    flame: { ...FLAME_CHOICE, worker: 2, search: 'a b' },
    finding: 2,
    rest: [],
  };
  expect(parseUrl(formatUrl(state))).toEqual(state);
});

it('is empty for the default view', () => {
  expect(formatUrl(EMPTY)).toBe('');
  expect(parseUrl('')).toEqual(EMPTY);
});

it('keeps parameters that a later version has added', () => {
  expect(formatUrl(parseUrl('#run=a&later=1&later=2'))).toBe('#run=a&later=1&later=2');
});

it.each(['#t0=5', '#t0=5&t1=5', '#t0=x&t1=9', '#t0=&t1=1', '#t0=Infinity&t1=NaN'])(
  'takes %s as no view at all',
  (fragment) => expect(parseUrl(fragment).start).toBeNull(),
);

it.each([
  '#poll=-1',
  '#poll=1.5',
  '#poll=',
  '#task=abc',
  '#panel=nope',
  '#range=5-1',
  '#park=1',
  '#park=x@5',
  '#page=spans:1',
  '#page=spans:x',
  '#field=amount',
  '#field=[1,2]',
])(
  'takes %s as missing',
  (fragment) => {
    expect({ ...parseUrl(fragment), rest: [] }).toEqual(EMPTY);
  },
);
