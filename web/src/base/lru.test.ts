// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { ByteLru } from './lru';

it('forgets what was used least recently when the budget is full', () => {
  const lru = new ByteLru<number>(10);
  lru.set('a', 1, 4);
  lru.set('b', 2, 4);
  expect(lru.get('a')).toBe(1);
  lru.set('c', 3, 4);
  expect(lru.has('b')).toBe(false);
  expect(lru.get('a')).toBe(1);
  expect(lru.bytes).toBe(8);
});

it('replaces an entry without counting it twice', () => {
  const lru = new ByteLru<number>(10);
  lru.set('a', 1, 6);
  lru.set('a', 2, 8);
  expect(lru.bytes).toBe(8);
  expect(lru.size).toBe(1);
});

it('keeps nothing that is larger than the whole budget', () => {
  const lru = new ByteLru<number>(10);
  lru.set('a', 1, 5);
  lru.set('b', 2, 11);
  expect(lru.has('b')).toBe(false);
  expect(lru.has('a')).toBe(true);
});
