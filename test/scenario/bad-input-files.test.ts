// What the server finds on its disk and does not trust: configuration, certificate, root key, data
// directory, database. Each is a refusal with the exit code of its class and one line that names
// the file and what to do; nothing is changed.
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSpoilt, usedFolder } from '../support/spoilt-server.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: files of another owner need the right to give files away');
const nobody = 65_534;

let folder: string;
beforeAll(async () => {
  folder = await usedFolder();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Expects exactly one line that a person can read: no stack, no source file. */
const oneLine = (message: string): void => {
  expect(message).not.toMatch(/\n\s+at |\.ts:\d+/);
  const lines = message
    .split('\n')
    .filter((line) => line.startsWith('dke server: ') || line.includes(': dke server: '));
  expect(lines, message).toHaveLength(1);
};

describe('dke.toml', () => {
  test.each([
    ['is not TOML', '[limits\nspeed = 9\n', /not TOML at line \d+, column \d+/],
    ['has an unknown table', '[speed]\nmost = 1\n', /unknown field speed/],
    ['has an unknown field', '[log]\nlevle = "info"\n', /unknown field log\.levle/],
    ['has text for a number', '[limits]\nconnections = "many"\n', /limits\.connections/],
    ['has a number out of range', '[limits]\nconnections = 3\n', /limits\.connections/],
    ['has another level of the log', '[log]\nlevel = "loud"\n', /log\.level/],
    ['names a certificate without its key', '[tls]\ncertificate = "c.pem"\n', /certificate and key come together/],
    ['has one field twice', '[log]\nlevel = "info"\nlevel = "warn"\n', /not TOML at line \d+/],
    ['names a root provider that there is not', '[root]\nprovider = "hsm"\n', /root\.provider/],
  ])('that %s: 2', async (_what, toml, message) => {
    const refusal = await startSpoilt(folder, () => undefined, { toml });
    expect(refusal).toMatchObject({ code: 2, changed: [], message: expect.stringMatching(message) });
    expect(refusal.message).toContain('dke.toml');
    oneLine(refusal.message);
  });

  test('that others may write: 3', async () => {
    const refusal = await startSpoilt(folder, (_data, copy) => chmodSync(copy, 0o777));
    expect(refusal).toMatchObject({ code: 3, changed: [] });
    expect(refusal.message).toMatch(/mode 777.*755 or stricter/);
    oneLine(refusal.message);
  });
});

describe('the certificate', () => {
  const pair = (copy: string, certificate: string, key: string, mode = 0o600): void => {
    writeFileSync(join(copy, 'c.pem'), certificate, { mode: 0o644 });
    writeFileSync(join(copy, 'k.pem'), key, { mode });
    chmodSync(join(copy, 'k.pem'), mode);
  };
  const own = (name: string): string => readFileSync(join(folder, 'dke-data', name), 'utf8');
  const otherKey = (): string =>
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const toml = '[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n';

  test('that belongs to another key: 2', async () => {
    const refusal = await startSpoilt(folder, (_data, copy) => pair(copy, own('tls.crt'), otherKey()), { toml });
    expect(refusal).toMatchObject({ code: 2, message: expect.stringContaining('[tls]') });
    oneLine(refusal.message);
  });

  test('that was changed after it was signed: 2', async () => {
    const der = new X509Certificate(own('tls.crt')).raw;
    // A digit of the date from which it is valid.
    const date = der.indexOf(Buffer.from([0x17, 0x0d])) + 2;
    der.writeUInt8(der.readUInt8(date) ^ 0x01, date);
    const lines = der.toString('base64').replaceAll(/.{64}/g, '$&\n');
    const changed = `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
    const refusal = await startSpoilt(folder, (_data, copy) => pair(copy, changed, own('tls.key')), { toml });
    expect(refusal).toMatchObject({
      code: 2,
      message: expect.stringMatching(/c\.pem is damaged, its signature is not valid/),
    });
    oneLine(refusal.message);
  });

  test('whose key was changed: 2', async () => {
    const der = createPrivateKey(own('tls.key')).export({ type: 'pkcs8', format: 'der' });
    // The private half alone, which is not compared.
    const secret = der.indexOf(Buffer.from([0x04, 0x20])) + 2;
    der.writeUInt8(der.readUInt8(secret + 16) ^ 0x10, secret + 16);
    const lines = der.toString('base64').replaceAll(/.{64}/g, '$&\n');
    const changed = `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`;
    const refusal = await startSpoilt(folder, (_data, copy) => pair(copy, own('tls.crt'), changed), { toml });
    expect(refusal).toMatchObject({ code: 2, message: expect.stringMatching(/k\.pem is damaged, or is not that of /) });
    oneLine(refusal.message);
  });

  test('whose key others may read: 3', async () => {
    const spoil = (_data: string, copy: string): void => pair(copy, own('tls.crt'), own('tls.key'), 0o640);
    const refusal = await startSpoilt(folder, spoil, { toml });
    expect(refusal).toMatchObject({ code: 3, changed: [] });
    expect(refusal.message).toMatch(/k\.pem has mode 640: it must have mode 600 or 400/);
    oneLine(refusal.message);
  });

  test('that is a directory: 3', async () => {
    const spoil = (_data: string, copy: string): void => {
      pair(copy, own('tls.crt'), own('tls.key'));
      rmSync(join(copy, 'c.pem'));
      mkdirSync(join(copy, 'c.pem'));
    };
    const refusal = await startSpoilt(folder, spoil, { toml });
    expect(refusal).toMatchObject({ code: 3, message: expect.stringContaining('c.pem is not a regular file') });
    oneLine(refusal.message);
  });

  test.runIf(isRoot)('whose key belongs to another user: 3', async () => {
    const spoil = (_data: string, copy: string): void => {
      pair(copy, own('tls.crt'), own('tls.key'));
      chownSync(join(copy, 'k.pem'), nobody, nobody);
    };
    const refusal = await startSpoilt(folder, spoil, { toml });
    expect(refusal).toMatchObject({ code: 3, message: expect.stringContaining(`belongs to user ${nobody}`) });
    oneLine(refusal.message);
  });

  test.runIf(isRoot)('that the server may not read: 3', async () => {
    // Without its capabilities the superuser is a user like any other, and the file may be read by
    // no one.
    const through = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];
    const spoil = (_data: string, copy: string): void => {
      pair(copy, own('tls.crt'), own('tls.key'));
      chmodSync(join(copy, 'c.pem'), 0o000);
    };
    const refusal = await startSpoilt(folder, spoil, { toml, through });
    expect(refusal).toMatchObject({ code: 3, message: expect.stringMatching(/c\.pem cannot be read \(EACCES\)/) });
    oneLine(refusal.message);
  });

  test('made by the server itself, and lost its key since: 3', async () => {
    const refusal = await startSpoilt(folder, (data) => rmSync(join(data, 'tls.key')));
    expect(refusal).toMatchObject({ code: 3, message: expect.stringContaining('tls.key') });
    oneLine(refusal.message);
  });
});

describe('the root key', () => {
  const rootKey = (data: string): string => join(data, 'root.key');

  test.each([
    ['is cut off', (path: string) => truncateSync(path, 4096)],
    ['is empty', (path: string) => truncateSync(path, 0)],
    [
      'is text',
      (path: string) => {
        chmodSync(path, 0o600);
        writeFileSync(path, 'a root key');
        chmodSync(path, 0o400);
      },
    ],
    [
      'is a directory',
      (path: string) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ])('that %s: refused, and named', async (_what, spoil) => {
    const refusal = await startSpoilt(folder, (data) => spoil(rootKey(data)));
    expect([3, 6]).toContain(refusal.code);
    expect(refusal.changed).toEqual([]);
    expect(refusal.message).toContain('root.key');
    oneLine(refusal.message);
  });

  test.runIf(isRoot)('that belongs to another user: 3', async () => {
    const refusal = await startSpoilt(folder, (data) => chownSync(rootKey(data), nobody, nobody));
    expect(refusal).toMatchObject({ code: 3, changed: [], message: expect.stringContaining('root.key') });
    oneLine(refusal.message);
  });

  test.runIf(isRoot)('that is a link of another user: refused', async () => {
    const refusal = await startSpoilt(folder, (data, copy) => {
      const target = join(copy, 'elsewhere.key');
      copyFileSync(rootKey(data), target);
      chmodSync(target, 0o400);
      chownSync(target, nobody, nobody);
      rmSync(rootKey(data));
      symlinkSync(target, rootKey(data));
    });
    expect([3, 6]).toContain(refusal.code);
    expect(refusal.message).toContain('root.key');
    oneLine(refusal.message);
  });

  test('without its database is a lost store, not a first start: 5', async () => {
    for (const spoil of [(path: string) => rmSync(path), (path: string) => truncateSync(path, 0)]) {
      const refusal = await startSpoilt(folder, (data) => spoil(join(data, 'dke.db')));
      expect(refusal).toMatchObject({ code: 5, changed: [] });
      expect(refusal.message).toMatch(/dke\.db is missing or empty/);
      oneLine(refusal.message);
    }
  });
});

describe('the data directory', () => {
  test('that is a file: 3', async () => {
    const toml = '[data]\ndirectory = "file"\n';
    const refusal = await startSpoilt(folder, (_data, copy) => writeFileSync(join(copy, 'file'), ''), { toml });
    expect(refusal).toMatchObject({
      code: 3,
      changed: [],
      message: expect.stringMatching(/file \(data\.directory\) is not a folder/),
    });
    oneLine(refusal.message);
  });

  test.runIf(isRoot)('that belongs to another user: 3', async () => {
    const refusal = await startSpoilt(folder, (data) => chownSync(data, nobody, nobody));
    expect(refusal).toMatchObject({ code: 3, changed: [], message: expect.stringMatching(/belongs to user 65534/) });
    oneLine(refusal.message);
  });
});

describe('the database', () => {
  const overwrite = (path: string, at: number, bytes: Buffer): void => {
    const file = openSync(path, 'r+');
    writeSync(file, bytes, 0, bytes.length, at);
    closeSync(file);
  };

  test.each([
    ['other bytes at its beginning', 0, Buffer.from('SQLite format 4\0')],
    ['a page size that there is not', 16, Buffer.from([0x12, 0x34])],
    ['the mark of another program', 68, Buffer.from([1, 2, 3, 4])],
    ['a first page of noise', 100, Buffer.alloc(3000, 0x5a)],
  ])('with %s: 5', async (_what, at, bytes) => {
    const refusal = await startSpoilt(folder, (data) => overwrite(join(data, 'dke.db'), at, bytes));
    expect(refusal).toMatchObject({ code: 5, changed: [], message: expect.stringMatching(/nothing was changed/) });
    oneLine(refusal.message);
  });

  test('cut off within its first page: 5', async () => {
    const refusal = await startSpoilt(folder, (data) => truncateSync(join(data, 'dke.db'), 1000));
    expect(refusal).toMatchObject({ code: 5, changed: [] });
    oneLine(refusal.message);
  });
});
