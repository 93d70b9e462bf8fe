// The file of dke login with one byte changed: it is refused by its name, or read as a session that
// the service refuses.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CommandError } from '../../../server/cli/exit-codes.ts';
import { readKept, sessionFile, sessionHeaders, writeKept } from '../../../server/cli/session-file.ts';
import { folderOfTest } from '../../support/folders.ts';

let folder: string;
const before = process.env.XDG_CONFIG_HOME;
const url = 'https://keys.example';
beforeEach(() => {
  folder = folderOfTest();
  process.env.XDG_CONFIG_HOME = folder;
  writeKept({ [url]: { user: 'anna', session: 'dke_session_0123456789abcdef' } });
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
  writeKept({ [url]: { user: 'anna', token: 'dket_0123456789abcdef' } });
  expect(sessionHeaders(url)).toEqual({ authorization: 'Bearer dket_0123456789abcdef' });
});

test.each(['', 'null', '[]', '0', '{"https://keys.example":null}', '{"https://keys.example":{"session":5}}', '{'])(
  'what is not a file of sessions is refused by its name: %s',
  (content) => {
    put(content);
    expect(() => readKept()).toThrow(`${sessionFile()} is not a file of sessions`);
  },
);
