// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Loss } from '../protocol/types';
import { busyText, eventsText, lossSentences } from './loss';

const off: Loss = { cause: 'recording_off', count: null, first_ns: 1e9, last_ns: 4e9 };
const full: Loss = { cause: 'ring full', count: 12, first_ns: 5e9, last_ns: 6e9 };
const gone: Loss = { cause: 'missing_segments', count: null, first_ns: 7e9, last_ns: 8e9 };

const sentences = (loss: Loss[], total: number | null, atLeast: number, beyond = 0) =>
  lossSentences({
    loss,
    loss_total: total,
    loss_at_least: atLeast,
    left_out: beyond === 0 ? {} : { loss: beyond },
  });

it('calls no event lost where recording was off, also in a trace that ended early', () => {
  const text = 'Recording was off for 3 s: nothing is known of that time, which is hatched.';
  expect(sentences([off], 0, 0)).toEqual([text]);
  expect(sentences([off], null, 0)).toEqual([text]);
  expect(sentences([], null, 0)).toEqual([]);
});

it('says both where events were lost as well, each of its own', () => {
  expect(sentences([off, full, { ...off, first_ns: 8e9, last_ns: 9e9 }], 12, 12)).toEqual([
    '12 events were lost (ring full); those times are hatched.',
    'Recording was off for 4 s: nothing is known of that time, which is hatched.',
  ]);
});

it('gives no bound of zero, and no sum of a list that was cut as whole', () => {
  expect(sentences([gone], null, 0)).toEqual([
    'An unknown number of events were lost (missing_segments); those times are hatched.',
  ]);
  expect(sentences([full, gone], null, 12)[0]).toContain('An unknown number (at least 12) of');
  expect(sentences([off], 12, 12, 3)).toEqual([
    '12 events were lost; those times are hatched.',
    'Recording was off for at least 3 s: nothing is known of that time, which is hatched.',
  ]);
});

it('counts the events of a trace that ended early as a lower bound', () => {
  const truncated = { message: 'a.bin: the input ends early', offset: 1000 };
  expect(eventsText({ events: 68, truncated: null })).toBe('68 events');
  expect(eventsText({ events: 1068, truncated })).toBe('at least 1,068 events');
  expect(eventsText({ events: 1, truncated })).toBe('at least 1 event');
});

it('tells no share of a time without a known end, and a bound where polls were lost', () => {
  const truncated = { message: 'a.bin: the input ends early', offset: 1000 };
  const of = { truncated: null, loss: [], duration_ns: 1e9 };
  expect(busyText(42e7, of)).toBe('42 % busy');
  expect(busyText(42e7, { ...of, truncated })).toBe('busy for 420 ms at least');
  const loss = [{ cause: 'buffer full', count: 3, first_ns: 0, last_ns: 1 }];
  expect(busyText(42e7, { ...of, loss })).toBe('at least 42 % busy');
  expect(busyText(0, { ...of, duration_ns: 0 })).toBe('unknown busy');
});
