// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { hoverText, lossLines, stallLines } from './hover_text';

it('names the place, length and task of a poll', () => {
  const slice = { kind: 0, dur: 2e7, task: '42', place: '/a/src/main.cc:7', isOpen: false };
  expect(hoverText({ slice }, 'worker 1', '12:00')).toEqual({
    title: 'src/main.cc:7',
    lines: ['20 ms, task 42', 'worker 1, 12:00'],
  });
});

it('says so when the task is unknown or the poll had not ended', () => {
  const slice = { kind: 0, dur: 5, task: null, place: null, isOpen: true };
  expect(hoverText({ slice }, 'w', 't')?.lines[0]).toBe(
    '5 ns, still going when the trace ends, task unknown',
  );
});

it('tells a park from a kernel wait', () => {
  const slice = { dur: 5, task: null, place: null, isOpen: false };
  expect(hoverText({ slice: { ...slice, kind: 1 } }, 'w', 't')?.title).toBe('Parked');
  expect(hoverText({ slice: { ...slice, kind: 2 } }, 'w', 't')?.title).toContain('Kernel wait');
});

it('says nothing where there is nothing', () => expect(hoverText({}, 'w', 't')).toBeNull());

it('says which events were lost where the pointer is', () => {
  const loss = { cause: 'ring full', count: 12, first_ns: 100, last_ns: 5100 };
  expect(lossLines([loss], 5105, 10)).toEqual(['12 events lost here: ring full, over 5 µs']);
  expect(lossLines([loss], 5120, 10)).toEqual([]);
  const unknown = { ...loss, cause: 'damaged', count: null };
  expect(lossLines([unknown], 5105, 10)).toEqual([
    'an unknown number of events lost here: damaged, over 5 µs',
  ]);
  const off = { ...unknown, cause: 'recording_off' };
  expect(lossLines([off], 5105, 10)).toEqual(['recording was off here, for 5 µs']);
});

it('has the unit of a value', () => {
  const event = { count: 1, value: 1_500_000 };
  expect(hoverText({ event }, 'w', 't', 'ns')?.lines).toEqual(['value 1.5 ms', 't']);
  expect(hoverText({ event }, 'w', 't', null)?.lines).toEqual(['value 1,500,000', 't']);
  const queue = { min: 1024, max: 5120, last: 3072, at: 7 };
  expect(hoverText({ queue }, 'resident bytes', 't', 'bytes')).toEqual({
    title: 'resident bytes: 3 KiB',
    lines: ['1 KiB to 5 KiB here', 't'],
  });
});

it('counts one poll as one', () => {
  const bin = { polls: 1, share: 0.5, maxdur: 10, dur: 1000 };
  expect(hoverText({ bin }, 'w', 't')?.title).toBe('1 poll starts within 1 µs');
});

it('says what the platform did where the pointer is, and for how long if that is known', () => {
  const throttled = {
    cause: 'cpu_throttled',
    text: 'the limit stopped it',
    begin_ns: 100,
    end_ns: 5100,
    stalled_ns: 2000,
    is_excuse: true,
  };
  const step = { ...throttled, cause: 'clock_step', text: 'the clock was set', stalled_ns: null };
  expect(stallLines([throttled, step], 5105, 10)).toEqual([
    'platform: the limit stopped it, up to 2 µs of 5 µs',
    'platform: the clock was set',
  ]);
  expect(stallLines([throttled], 5120, 10)).toEqual([]);
});
