// The hello of our library, as the agent reads it.
import { expect, test } from 'vitest';
import { parseHello } from '../../../provider/client/hello.ts';
import { CKR } from '../../../provider/schema/return-values.ts';

const hello = {
  config: '/etc/dke/pkcs11.toml',
  library: '1.0',
  connection: 2,
  wait: 60,
  pid: 12,
  process: 'ora_lgwr_ORCL',
  login: null,
  sessions: [],
};
const parse = (value: unknown) => parseHello(Buffer.from(`${JSON.stringify(value)}\0`, 'latin1'));

test('a hello says which configuration, which process and which sessions', () => {
  expect(parse(hello)).toEqual(hello);
  expect(parse({ ...hello, login: 1, sessions: [[7, 0, 6]], more: true })).toEqual({
    ...hello,
    login: 1,
    sessions: [{ handle: 7, slot: 0, flags: 6 }],
  });
});

test('an older library does not count its connections, and does not wait', () => {
  expect(parse({ ...hello, wait: undefined }).wait).toBe(0);
  expect(parse({ ...hello, connection: undefined }).connection).toBe(0);
});

test('a path of any bytes survives', () => {
  expect(parse({ ...hello, config: Buffer.from('/etc/sch\u00fcssel', 'utf8').toString('latin1') }).config).toBe(
    '/etc/sch\u00fcssel',
  );
});

test('anything else is CKR_ARGUMENTS_BAD', () => {
  const wrong = [
    null,
    [],
    'text',
    { ...hello, pid: -1 },
    { ...hello, connection: 0.5 },
    { ...hello, wait: -1 },
    { ...hello, config: 5 },
    { ...hello, login: 'user' },
    { ...hello, sessions: [[1, 2]] },
    { ...hello, sessions: [[1, 2, 'x']] },
  ];
  for (const value of wrong) expect(() => parse(value)).toThrow(expect.objectContaining({ rv: CKR.ARGUMENTS_BAD }));
  expect(() => parseHello(Buffer.from('{'))).toThrow(expect.objectContaining({ rv: CKR.ARGUMENTS_BAD }));
  expect(() => parseHello(Buffer.alloc(0))).toThrow(expect.objectContaining({ rv: CKR.ARGUMENTS_BAD }));
});
