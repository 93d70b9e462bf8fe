// The file of dke login with one byte changed: it is refused by its name, or read as a session that
// the service refuses.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { changeOwnFile } from '../../../server/cli/service/own-file.ts';
import {
  type Kept,
  keptAt,
  parseKept,
  readKept,
  readyToKeep,
  sessionFile,
  sessionHeaders,
  writeKept,
} from '../../../server/cli/service/session-file.ts';
import { CommandError } from '../../../server/cli/terminal/exit-codes.ts';
import { folderOfTest } from '../../support/folders.ts';

let folder: string;
const before = process.env.XDG_CONFIG_HOME;
const url = 'https://keys.example';
const other = 'https://other.example';
const parsed = (value: object): Kept => {
  const kept = parseKept(value);
  if (kept === undefined) throw new Error(`no sign-in: ${JSON.stringify(value)}`);
  return kept;
};
beforeEach(() => {
  folder = folderOfTest();
  process.env.XDG_CONFIG_HOME = folder;
  writeKept(url, parsed({ user: 'anna', session: 'dke_session_0123456789abcdef' }));
});
afterEach(() => {
  if (before === undefined) delete process.env.XDG_CONFIG_HOME;
  else process.env.XDG_CONFIG_HOME = before;
});

const put = (content: Buffer | string): void => {
  writeFileSync(sessionFile(), content);
  chmodSync(sessionFile(), 0o600);
};

test('every bit of it turned around: refused by the name of the file, or headers that can be sent', () => {
  const whole = readFileSync(sessionFile());
  const outcomes = { refused: 0, read: 0 };
  for (let at = 0; at < whole.length; at += 1)
    for (let bit = 0; bit < 8; bit += 1) {
      const spoilt = Buffer.from(whole);
      spoilt.writeUInt8(spoilt.readUInt8(at) ^ (1 << bit), at);
      put(spoilt);
      try {
        const headers = sessionHeaders(url);
        if (headers !== undefined) new Headers(headers);
        outcomes.read += 1;
      } catch (error) {
        expect(error).toBeInstanceOf(CommandError);
        expect((error as Error).message).toContain(sessionFile());
        outcomes.refused += 1;
      }
    }
  expect(outcomes.refused).toBeGreaterThan(100);
  expect(outcomes.read).toBeGreaterThan(100);
});

test('a token of a browser is sent as one, without the origin of a page', () => {
  writeKept(url, parsed({ user: 'anna', token: 'dket_0123456789abcdef' }));
  expect(sessionHeaders(url)).toEqual({ authorization: 'Bearer dket_0123456789abcdef' });
});

test.each(['', 'null', '[]', '0', '{'])('what is not a file of sessions is refused by its name: %s', (content) => {
  put(content);
  expect(() => readKept()).toThrow(`${sessionFile()} is not a file of sessions`);
});

test.each([
  null,
  7,
  {},
  { session: 5 },
  { user: 'ina' },
  { user: 'ina', token: null },
  { user: 'ina', token: '' },
  { user: 'ina', session: 'a"b c' },
  { user: 'ina', session: 'a;b' },
  { user: 'ina', session: '', token: 'dket_x' },
  { user: 7, token: 'dket_x' },
])(
  'an entry that is no sign-in is refused at its own service only, and another one does not change it: %j',
  (entry) => {
    expect(parseKept(entry)).toBeUndefined();
    const good = { user: 'anna', token: 'dket_0123456789abcdef' };
    put(JSON.stringify({ [url]: entry, [other]: good }));
    expect(sessionHeaders(other)).toEqual({ authorization: 'Bearer dket_0123456789abcdef' });
    expect(() => sessionHeaders(url)).toThrow(`${sessionFile()} has no usable sign-in for ${url}`);
    expect(keptAt(readKept(), url)).toBeUndefined();
    writeKept(other, parsed({ ...good, token: 'dket_next' }));
    expect(JSON.parse(readFileSync(sessionFile(), 'utf8'))).toEqual({
      [url]: entry,
      [other]: { ...good, token: 'dket_next' },
    });
    writeKept(url, parsed(good));
    expect(sessionHeaders(url)).toEqual(sessionHeaders(other) && { authorization: `Bearer ${good.token}` });
    writeKept(url, undefined);
    writeKept(other, undefined);
    expect(existsSync(sessionFile())).toBe(false);
  },
);

test('the draft of another process with this number, in another container with the same home, stays', () => {
  const drafts = [`${sessionFile()}.${process.pid}`, `${sessionFile()}.1`];
  for (const draft of drafts) writeFileSync(draft, 'of another');
  const before = readdirSync(folder, { recursive: true }).toSorted();
  readyToKeep();
  writeKept(other, parsed({ user: 'anna', token: 'dket_0123456789abcdef' }));
  expect(readdirSync(folder, { recursive: true }).toSorted()).toEqual(before);
  expect(drafts.map((draft) => readFileSync(draft, 'utf8'))).toEqual(['of another', 'of another']);
});

test('what a command that was killed has left goes with the next one: its draft, and its lock', () => {
  const draft = `${sessionFile()}.${randomUUID()}`;
  const others = `${sessionFile()}.old`;
  for (const path of [draft, others]) writeFileSync(path, 'a secret');
  writeFileSync(`${sessionFile()}.lock`, randomUUID());
  utimesSync(`${sessionFile()}.lock`, 0, 0);
  writeKept(other, parsed({ user: 'anna', token: 'dket_0123456789abcdef' }));
  expect(readdirSync(dirname(sessionFile())).toSorted()).toEqual([sessionFile(), others].map((path) => basename(path)));
  expect([...readKept().keys()].toSorted()).toEqual([url, other].toSorted());
});

test('sign-ins at once are all in it', async () => {
  const module = resolve(import.meta.dirname, '../../../server/cli/service/session-file.ts');
  const [commands, each] = [4, 12];
  const program = (command: number): string =>
    `const { parseKept, writeKept } = await import(${JSON.stringify(module)});
     for (let at = 0; at < ${each}; at += 1)
       writeKept('https://keys-${command}-' + at + '.example', parseKept({ user: 'anna', token: 'dket_' + at }));`;
  const children = Array.from({ length: commands }, (_, command) =>
    spawn(process.execPath, ['--input-type=module', '-e', program(command)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
  expect(await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0]))).toEqual(
    Array.from({ length: commands }, () => 0),
  );
  expect(readKept().size).toBe(1 + commands * each);
  expect(readdirSync(join(folder, 'dke'))).toEqual([basename(sessionFile())]);
});

test('a lock that is not a file is named, and does not make commands wait', () => {
  const lock = `${sessionFile()}.lock`;
  for (const [make, remove] of [
    [() => symlinkSync(join(folder, 'gone'), lock), () => rmSync(lock)],
    [() => mkdirSync(lock), () => rmSync(lock, { recursive: true })],
  ] as const) {
    make();
    expect(() => readyToKeep()).toThrow(
      expect.objectContaining({ exitClass: 'config', message: `${lock} is not a file` }),
    );
    remove();
    readyToKeep();
  }
});

test('a lock that others keep is named in the end', () => {
  const lock = `${sessionFile()}.lock`;
  writeFileSync(lock, randomUUID());
  expect(() => changeOwnFile(sessionFile(), () => undefined, 0)).toThrow(
    expect.objectContaining({ exitClass: 'config', message: `another command keeps ${lock}` }),
  );
  expect(existsSync(lock)).toBe(true);
  rmSync(lock);
  changeOwnFile(sessionFile(), () => undefined, 0);
});
