// The hello of our library, as the agent reads it.
import { expect, test } from 'vitest';
import { parseHello } from '../../../provider/agent/sessions/hello.ts';
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
    // What no library sends: a session twice, a handle that is none, another user.
    { ...hello, sessions: Array(3).fill([1, 0, 6]) },
    { ...hello, sessions: [[0, 0, 6]] },
    { ...hello, sessions: [[2 ** 31, 0, 6]] },
    { ...hello, login: 0 },
    { ...hello, login: 2 },
    { ...hello, login: 77 },
    { ...hello, wait: 601 },
    { ...hello, config: '/etc/\0' },
    { ...hello, config: '/etc/\u0416' },
    { ...hello, config: `/${'x'.repeat(4096)}` },
    { ...hello, process: 'x'.repeat(1025) },
  ];
  for (const value of wrong) expect(() => parse(value)).toThrow(expect.objectContaining({ rv: CKR.ARGUMENTS_BAD }));
  expect(() => parseHello(Buffer.from('{'))).toThrow(expect.objectContaining({ rv: CKR.ARGUMENTS_BAD }));
  expect(() => parseHello(Buffer.alloc(0))).toThrow(expect.objectContaining({ rv: CKR.ARGUMENTS_BAD }));
});

// A fuzz target: whatever comes, the answer is a hello within its bounds or CKR_ARGUMENTS_BAD.
test('any bytes are a hello within its bounds, or CKR_ARGUMENTS_BAD', () => {
  let seed = 44;
  const below = (n: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
  const values = [
    null,
    -1,
    0,
    1,
    2,
    2 ** 31,
    2 ** 53,
    1e300,
    0.5,
    '',
    '/p',
    '\u00e9',
    '\u0416',
    '\0',
    true,
    [],
    {},
    [[1, 0, 6]],
    [
      [1, 0, 6],
      [1, 0, 4],
    ],
  ];
  const names = [...Object.keys(hello), '__proto__', 'constructor'];
  for (let n = 0; n < 4_000; n++) {
    const made: Record<string, unknown> = { ...hello };
    for (let change = below(4); change > 0; change--)
      made[names[below(names.length)] ?? ''] = values[below(values.length)];
    const bytes = Buffer.from(`${JSON.stringify(made)}\0`, 'latin1');
    if (below(3) === 0) bytes[below(bytes.length)] = below(256);
    let read: ReturnType<typeof parseHello>;
    try {
      read = parseHello(bytes.subarray(0, below(8) === 0 ? below(bytes.length) : bytes.length));
    } catch (error) {
      expect(error).toMatchObject({ rv: CKR.ARGUMENTS_BAD });
      continue;
    }
    expect([null, 1]).toContain(read.login);
    expect(new Set(read.sessions.map(({ handle }) => handle)).size).toBe(read.sessions.length);
    expect(read.wait).toBeLessThanOrEqual(600);
    expect(read.config).not.toContain('\0');
  }
});
