// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  baseStretch,
  comparedText,
  FLAME_CHOICE,
  type FlameChoice,
  findingChoice,
  formatFlame,
  parseFlame,
} from './flame_choice';

describe('the choice in the address', () => {
  it('comes back, and is short where it is as usual', () => {
    expect(formatFlame(FLAME_CHOICE)).toBe('');
    const choices: Partial<FlameChoice>[] = [
      { worker: 3, task: '7', label: 'a=b&c', search: 'x y' },
      { of: 'time', shows: 'butterfly', around: { name: 'f<int>(a, b)', module: 'app' } },
      { of: 'live', counts: true, shows: 'table', base: 'previous' },
      { of: 'offcpu', top: 'call', parked: true, shows: 'time' },
      { shows: 'inverted', lines: true, base: 'all', scope: 'range' },
      { base: 'run', baseRun: 'base:old run&.bin' },
    ];
    for (const change of choices) {
      const choice = { ...FLAME_CHOICE, ...change };
      expect(parseFlame(formatFlame(choice))).toEqual(choice);
    }
    const wrong =
      'scope=evil&scope=stretch&worker=x&task=-1&span=&stretch=5,2&stretch=1,x&' +
      'of=x&view=x&top=x&base=x&q=';
    expect(parseFlame(wrong)).toEqual(FLAME_CHOICE);
    expect(parseFlame('base=run')).toEqual(FLAME_CHOICE);
    expect(parseFlame('base=run&base_run=')).toEqual(FLAME_CHOICE);
    expect(parseFlame('base_run=old')).toEqual(FLAME_CHOICE);
  });
  it('keeps the stretch and the span that it is of, whatever is selected later', () => {
    const choice = { ...FLAME_CHOICE, scope: 'stretch', stretch: [1.5, 20], span: 4 } as const;
    expect(parseFlame(formatFlame(choice))).toEqual(choice);
  });
});

describe('what it is compared with', () => {
  it('is as long a stretch before it, from the trace’s start on', () => {
    expect(baseStretch('previous', [30, 40], null)).toEqual([20, 30]);
    expect(baseStretch('previous', [3, 40], null)).toEqual([0, 3]);
    expect(baseStretch('range', [3, 40], [1, 2])).toEqual([1, 2]);
    expect(baseStretch('all', [3, 40], [1, 2])).toBeNull();
  });
  it('is all of another run, whatever is measured here', () => {
    expect(baseStretch('run', [3, 40], [1, 2])).toBeNull();
  });
  it('is said of both sides, with their lengths as far as they are known', () => {
    const text = (choice: Partial<FlameChoice>, before: [number, number] | null) =>
      comparedText('screen', [1e6, 3e6], { ...FLAME_CHOICE, ...choice }, before, 'old.bin');
    expect(text({ base: 'run' }, null)).toBe(
      'now: what is on screen, 2 ms; before: the whole of old.bin',
    );
    expect(text({ base: 'previous' }, [0, 1e6])).toBe(
      'now: what is on screen, 2 ms; before: the time before it, 1 ms',
    );
    const span = { ...FLAME_CHOICE, base: 'run', span: 4 } as const;
    expect(comparedText('all', null, span, null, 'old.bin')).toBe(
      'now: span #4; before: the whole of old.bin',
    );
  });
});

describe('a finding’s flame graph', () => {
  const finding = { at_ns: 10, end_ns: 30, worst_ns: 20, task: '7' };
  it('is of exactly its stretch, on its worker or else of its task', () => {
    const expected = { of: 'time', scope: 'stretch', stretch: [10, 30] };
    expect(findingChoice(finding, 3)).toMatchObject({ ...expected, worker: 3, task: null });
    expect(findingChoice(finding, null)).toMatchObject({ ...expected, task: '7', worker: null });
    const bare = { ...finding, task: null };
    expect(findingChoice(bare, null)).toMatchObject({ ...expected, task: null });
    expect(findingChoice({ ...finding, end_ns: null }, 3)).toMatchObject(expected);
  });
  it('is none where no one moment is told', () => {
    expect(findingChoice({ ...finding, at_ns: null }, 3)).toBeNull();
    expect(findingChoice({ ...finding, end_ns: null, worst_ns: null }, 3)).toBeNull();
  });
});
