// The library holds an Init back when only the bytes of a flat parameter differ from one that was
// accepted (PROTOCOL.md, "Held Init"). That cannot be seen only as long as each mechanism takes or
// refuses a flat parameter by its length.
import { expect, test } from 'vitest';
import { mechanismRows } from '../../../provider/agent/operations/mechanisms.ts';

const accepts = (
  take: (parameter: { kind: 'bytes'; bytes: Uint8Array<ArrayBuffer> }) => unknown,
  bytes: Uint8Array<ArrayBuffer>,
) => {
  try {
    take({ kind: 'bytes', bytes });
    return true;
  } catch {
    return false;
  }
};
const contents = (length: number): Uint8Array<ArrayBuffer>[] =>
  [0, 1, 0x7f, 0x80, 0xff]
    .map((byte) => new Uint8Array(length).fill(byte))
    .concat(Uint8Array.from({ length }, (_, at) => at));

const rows = mechanismRows.flatMap(({ type, cipher, signature }) => {
  const take =
    cipher?.parameters ?? ((parameter) => signature?.parameters(parameter, { kind: 'rsa-private', bits: 2048 }));
  return cipher === undefined && signature === undefined ? [] : [{ type, take }];
});

test('some mechanism takes a flat parameter', () => {
  expect(rows.some(({ take }) => accepts(take, new Uint8Array(16)))).toBe(true);
});

test.each(rows)('mechanism $type takes or refuses a flat parameter by its length alone', ({ take }) => {
  for (let length = 0; length <= 64; length += 1)
    expect(new Set(contents(length).map((bytes) => accepts(take, bytes))).size, `${length} bytes`).toBe(1);
});
