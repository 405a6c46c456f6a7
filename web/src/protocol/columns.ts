// Reads a reply of binary columns: typed arrays laid over the bytes, nothing copied but text.
// Every offset is checked, so a short or foreign reply is an error and never a wrong picture.
// Spec: docs/spec/http_api.md, "Binary columns".
// SPDX-License-Identifier: Apache-2.0

const MAGIC = 0x31433944; // "D9C1"
const HEAD_BYTES = 16;
const DESCRIPTOR_BYTES = 24;
const F64 = 1;
const F32 = 2;
const U32 = 3;
const U8 = 4;
const TEXT = 5;
const WIDTH: Readonly<Record<number, number>> = { [F64]: 8, [F32]: 4, [U32]: 4, [U8]: 1 };

/** A row of `kNoIndex` names nothing: an unknown poll, task or name. */
export const NO_INDEX = 0xffffffff;

interface Column {
  type: number;
  rows: number;
  offset: number;
}

export class Columns {
  readonly bytes: number;
  readonly generation: bigint;
  private readonly columns = new Map<string, Column>();

  constructor(private readonly buffer: ArrayBuffer) {
    const view = new DataView(buffer);
    if (buffer.byteLength < HEAD_BYTES || view.getUint32(0, true) !== MAGIC) {
      throw new Error('the reply holds no columns');
    }
    this.bytes = buffer.byteLength;
    this.generation = view.getBigUint64(8, true);
    const count = view.getUint32(4, true);
    if (HEAD_BYTES + count * DESCRIPTOR_BYTES > buffer.byteLength) {
      throw new Error('the reply ends inside its header');
    }
    for (let i = 0; i < count; i += 1)
      this.readDescriptor(view, HEAD_BYTES + i * DESCRIPTOR_BYTES);
  }

  f64(name: string): Float64Array {
    const { rows, offset } = this.find(name, F64);
    return new Float64Array(this.buffer, offset, rows);
  }
  f32(name: string): Float32Array {
    const { rows, offset } = this.find(name, F32);
    return new Float32Array(this.buffer, offset, rows);
  }
  u32(name: string): Uint32Array {
    const { rows, offset } = this.find(name, U32);
    return new Uint32Array(this.buffer, offset, rows);
  }
  u8(name: string): Uint8Array {
    const { rows, offset } = this.find(name, U8);
    return new Uint8Array(this.buffer, offset, rows);
  }
  text(name: string): string[] {
    const { rows, offset } = this.find(name, TEXT);
    const ends = new Uint32Array(this.buffer, offset, rows + 1);
    const start = offset + (rows + 1) * 4;
    const decoder = new TextDecoder();
    const out: string[] = [];
    for (let i = 0; i < rows; i += 1) {
      const from = start + (ends[i] ?? 0);
      const to = start + (ends[i + 1] ?? 0);
      if (from > to || to > this.bytes) throw new Error(`column '${name}' leaves the reply`);
      out.push(decoder.decode(new Uint8Array(this.buffer, from, to - from)));
    }
    return out;
  }

  private readDescriptor(view: DataView, at: number): void {
    let name = '';
    for (let i = 0; i < 8; i += 1) {
      const code = view.getUint8(at + i);
      if (code !== 0) name += String.fromCharCode(code);
    }
    const type = view.getUint32(at + 8, true);
    const rows = view.getUint32(at + 12, true);
    const offset = view.getUint32(at + 16, true);
    const size = type === TEXT ? (rows + 1) * 4 : rows * (WIDTH[type] ?? 0);
    if (offset % 8 !== 0 || offset + size > this.bytes) {
      throw new Error(`column '${name}' leaves the reply`);
    }
    this.columns.set(name, { type, rows, offset });
  }

  private find(name: string, type: number): Column {
    const column = this.columns.get(name);
    if (!column || column.type !== type) throw new Error(`the reply lacks column '${name}'`);
    return column;
  }
}
