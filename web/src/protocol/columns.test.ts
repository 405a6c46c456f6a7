// The bytes below are written by hand from the specification, not by our own writer.
// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { Columns } from './columns';

function reply(): ArrayBuffer {
  const buffer = new ArrayBuffer(16 + 3 * 24 + 16 + 8 + 16);
  const view = new DataView(buffer);
  const name = (at: number, text: string) =>
    [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  const describe = (i: number, id: string, type: number, rows: number, offset: number) => {
    name(16 + i * 24, id);
    view.setUint32(16 + i * 24 + 8, type, true);
    view.setUint32(16 + i * 24 + 12, rows, true);
    view.setUint32(16 + i * 24 + 16, offset, true);
  };
  name(0, 'D9C1');
  view.setUint32(4, 3, true);
  view.setBigUint64(8, 7n, true);
  describe(0, 'start', 1, 2, 88);
  describe(1, 'kind', 4, 3, 104);
  describe(2, 'names', 5, 2, 112);
  view.setFloat64(88, 1.5, true);
  view.setFloat64(96, -2, true);
  view.setUint8(105, 2);
  view.setUint32(116, 1, true);
  view.setUint32(120, 3, true);
  name(124, 'abc');
  return buffer;
}

it('reads what the specification says', () => {
  const columns = new Columns(reply());
  expect(columns.generation).toBe(7n);
  expect([...columns.f64('start')]).toEqual([1.5, -2]);
  expect([...columns.u8('kind')]).toEqual([0, 2, 0]);
  expect(columns.text('names')).toEqual(['a', 'bc']);
});

it('refuses a reply of something else', () => {
  expect(() => new Columns(new ArrayBuffer(4))).toThrow('holds no columns');
  expect(() => new Columns(new TextEncoder().encode('{"error": {"code": 1}}').buffer)).toThrow();
});

it('refuses columns that leave the reply, at every length', () => {
  const whole = reply();
  for (let length = 0; length < whole.byteLength - 8; length += 1) {
    expect(() => new Columns(whole.slice(0, length)).text('names')).toThrow();
  }
});

it('refuses a column of another type', () => {
  expect(() => new Columns(reply()).f64('kind')).toThrow("lacks column 'kind'");
});
