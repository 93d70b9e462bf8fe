// The file of a backup: it returns its input, in pieces that do not match its segments; a change or
// a cut anywhere is noticed.
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { appendFileSync, copyFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { core, type KeyRef } from '../../../addon/core.ts';
import { labelBytes } from '../../../addon/labels.ts';
import {
  draftOf,
  openBackupKey,
  readBackup,
  readBackupHead,
  requireSigner,
  writeBackup,
} from '../../../server/adapters/archives/backup-file.ts';
import { backupOfOneService } from '../../../server/app/host/create-backup.ts';
import { canonicalJson } from '../../../server/base/bytes.ts';
import { parseVerifierKey, verifierKey } from '../../../server/base/checkpoint.ts';
import {
  backupContext,
  formatRecoveryKey,
  parseRecoveryKey,
  type RecoveryPublicKey,
} from '../../../server/base/recovery-key.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { openRecoveryKeyFile } from '../../../server/cli/service/recovery-key-file.ts';
import { backupClosingText } from '../../../server/domain/service-backup.ts';
import { mostRecoveryKeys } from '../../../server/operations/snapshots/recovery-keys.ts';
import type { BackupAuthority } from '../../../server/ports/backup-authority.ts';
import { sharedFolder } from '../../support/folders.ts';
import fc from '../../support/property.ts';

const segment = 1_048_576;
const named = {
  backupId: '01981d2c-7c1f-7b35-9a04-52a1be40c0de',
  at: '2026-03-01T09:30:00.118Z',
  version: '1.0.0',
  schema: '2025-12',
  log: 'dke/audit/one',
  records: 17,
  rootEpochs: [3],
};
const folder = sharedFolder();
let owner: KeyRef;
let other: KeyRef;
const at = (name: string): string => join(folder, name);
const publicOf = (key: KeyRef): RecoveryPublicKey => {
  const parsed = parseRecoveryKey(formatRecoveryKey(core.hpkePublicKey(key)));
  if (parsed === null) throw new Error('a public key is one');
  return parsed;
};
/** A service, or a person who has no key of one. */
const signerOf = (name: string): { readonly verifierKey: string; readonly sign: BackupAuthority['sign'] } => {
  const pair = generateKeyPairSync('ed25519');
  const x = Buffer.from(String(pair.publicKey.export({ format: 'jwk' }).x), 'base64url');
  const signer = verifierKey(name, x);
  return {
    verifierKey: signer,
    sign: async ({ backupId, digest }) => ({
      signer,
      signature: sign(null, Buffer.from(backupClosingText({ backupId, digest, signer })), pair.privateKey),
    }),
  };
};
const service = signerOf('dke/audit/one');
const verifierOf = (text: string) => {
  const verifier = parseVerifierKey(text);
  if (verifier === null) throw new Error('a verifier key is one');
  return verifier;
};
const mineOf = () => ({ verifier: verifierOf(service.verifierKey), logged: undefined });
const read = async (path: string, id = publicOf(owner).id, recovery = owner) => {
  const key = openBackupKey(core, (await readBackupHead(path)).preface, id, recovery);
  const found = new Map<string, Buffer>();
  try {
    await readBackup(core, path, key, (name) => {
      const pieces: Buffer[] = [];
      return {
        write: async (bytes) => void pieces.push(Buffer.from(bytes)),
        end: async () => void found.set(name, Buffer.concat(pieces)),
      };
    });
    return found;
  } finally {
    core.release(key);
  }
};
const random = (length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  core.random(bytes);
  return bytes;
};
const write = (name: string, database: Buffer, by: Pick<BackupAuthority, 'sign'> = service) => {
  writeFileSync(at('database'), database);
  return writeBackup(
    core,
    at(name),
    named,
    [publicOf(owner)],
    [
      { name: 'empty', from: Buffer.alloc(0) },
      { name: 'node', from: Buffer.from('a node') },
      { name: 'database', from: { path: at('database') } },
    ],
    by,
  );
};
/** The stream ends with a full segment, so the last one is empty. */
const headers = ['empty', 'node', 'database'];
const whole = (segments: number): number => {
  const rest = segments * segment - 'a node'.length;
  const lines = (bytes: number): number =>
    [0, 6, bytes].reduce((sum, each, i) => sum + `${JSON.stringify({ bytes: each, name: headers[i] })}\n`.length, 0);
  return rest - lines(rest - 100);
};

beforeAll(() => {
  core.initialize({ allowUnlocked: true });
  owner = core.generateHpkeKey();
  other = core.generateHpkeKey();
});

test.each([0, 1, segment - 100, segment, whole(2), whole(2) + 1, 3 * segment + 12_345])(
  'a database of %d bytes comes back as it was',
  async (length) => {
    const database = random(length);
    expect(await write(`of-${length}`, database)).toMatchObject({ bytes: statSync(at(`of-${length}`)).size });
    const found = await read(at(`of-${length}`));
    expect([...found.keys()]).toEqual(headers);
    expect(found.get('node')?.toString()).toBe('a node');
    expect(found.get('database')?.equals(database)).toBe(true);
    const head = await readBackupHead(at(`of-${length}`));
    expect(head.preface).toMatchObject(named);
    requireSigner('it', head, mineOf());
  },
);

test('what another service writes to the same name stays, and so does its backup that is under way', async () => {
  const theirs = [at('shared'), `${at('shared')}.part`, `${at('shared')}.01981d2c-7c1f-7b35-9a04-52a1be40c0df.part`];
  for (const path of theirs.slice(1)) writeFileSync(path, 'of another');
  const signing = write('shared', random(100), {
    sign: (what) => {
      // The other service finishes first.
      writeFileSync(theirs[0] ?? '', 'of another');
      return service.sign(what);
    },
  });
  await expect(signing).rejects.toMatchObject({ code: 'EEXIST' });
  expect(theirs.map((path) => readFileSync(path, 'utf8'))).toEqual(Array(3).fill('of another'));
  expect(existsSync(draftOf(at('shared'), named.backupId))).toBe(false);
});

describe('of a file that was changed nothing is taken', () => {
  const closing = (bytes: Buffer): number => bytes.readUInt32BE(bytes.length - 4) + 64 + 4;
  const head = (): number => {
    const bytes = readFileSync(at('good'));
    return bytes.length - closing(bytes) - 2 * (segment + 16) - 16;
  };
  beforeAll(async () => {
    await write('other', random(whole(2)));
    await write('good', random(whole(2)));
  });
  const changes: readonly (readonly [string, (path: string) => void])[] = [
    ['cut behind a whole segment', (path) => truncateSync(path, head() + segment + 16)],
    ['cut before its empty last segment', (path) => truncateSync(path, head() + 2 * (segment + 16))],
    ['cut by a byte', (path) => truncateSync(path, statSync(path).size - 1)],
    ['cut in its preface', (path) => truncateSync(path, 100)],
    ['longer by a byte', (path) => appendFileSync(path, 'x')],
    [
      'put together with its segments in another order',
      (path) => {
        const bytes = readFileSync(path);
        const [first, second] = [head(), head() + segment + 16].map((from) =>
          Buffer.from(bytes.subarray(from, from + segment + 16)),
        );
        second?.copy(bytes, head());
        first?.copy(bytes, head() + segment + 16);
        writeFileSync(path, bytes);
      },
    ],
    [
      'with the closing of another file',
      (path) => {
        const [bytes, other] = [readFileSync(path), readFileSync(at('other'))];
        const body = bytes.subarray(0, bytes.length - closing(bytes));
        writeFileSync(path, Buffer.concat([body, other.subarray(other.length - closing(other))]));
      },
    ],
    [
      'with a closing that names another signer',
      (path) => {
        const bytes = readFileSync(path);
        bytes.write('dke/audit/two', bytes.lastIndexOf('dke/audit/one'));
        writeFileSync(path, bytes);
      },
    ],
    [
      'of another preface',
      (path) => {
        const bytes = readFileSync(path);
        bytes.write('18', bytes.indexOf('"records":17') + 10);
        writeFileSync(path, bytes);
      },
    ],
    [
      'changed in one bit',
      (path) => {
        const bytes = readFileSync(path);
        const place = head() + segment + 1000;
        bytes[place] = (bytes[place] ?? 0) ^ 4;
        writeFileSync(path, bytes);
      },
    ],
  ];
  test.each(changes)('%s', async (_, change) => {
    copyFileSync(at('good'), at('changed'));
    change(at('changed'));
    await expect(read(at('changed'))).rejects.toMatchObject({
      code: 'key-tampered',
      message: expect.stringMatching(/cut off|damaged/),
    });
  });
  test('and another file is none', async () => {
    writeFileSync(at('else'), 'something else that is long enough');
    await expect(read(at('else'))).rejects.toMatchObject({ code: 'validation' });
  });
});

test('only a recovery key that it is sealed to opens it', async () => {
  await write('mine', random(10));
  const { preface } = await readBackupHead(at('mine'));
  const [recipient] = preface.recipients;
  expect(() => openBackupKey(core, preface, publicOf(other).id, other)).toThrow(/not encrypted to the recovery key/);
  const claimed = publicOf(owner).id;
  expect(() => openBackupKey(core, preface, claimed, other)).toThrow(
    expect.objectContaining({ code: 'authentication-failed' }),
  );
  const moved = { ...preface, backupId: '01981d2c-7c1f-7b35-9a04-52a1be40c0df', recipients: [recipient ?? never()] };
  expect(() => openBackupKey(core, moved, claimed, owner)).toThrow(
    expect.objectContaining({ code: 'authentication-failed' }),
  );
});
const never = (): never => {
  throw new Error('a backup has a recipient');
};

test('the given verifier key must have signed it: every other file is not authentic', async () => {
  const attacker = signerOf('dke/audit/one');
  await write('forged', random(10), attacker);
  await write('signed', random(10));
  const [forged, signed] = await Promise.all([readBackupHead(at('forged')), readBackupHead(at('signed'))]);
  // The forged file opens, because the recovery key is public, and its signature is that of its
  // signer.
  expect((await read(at('forged'))).get('node')?.toString()).toBe('a node');
  const mine = mineOf();
  requireSigner('it', signed, mine);
  expect(() => requireSigner('it', forged, mine)).toThrow(/not authentic: it was signed by dke\/audit\/one\+/);
  expect(() => requireSigner('it', signed, { ...mine, verifier: { ...mine.verifier, name: 'dke/audit/two' } })).toThrow(
    /not authentic/,
  );
  // Old backups are removed by count: one that another key has signed is none of them.
  const ours = (name: string) => backupOfOneService(at(name), at('signed'));
  execFileSync('mkfifo', [at('a pipe')]);
  const { backupId } = signed.preface;
  expect([await ours('signed'), await ours('forged'), await ours('a pipe')]).toEqual([backupId, undefined, undefined]);
  // Without its closing it is one of format 1.
  const bytes = readFileSync(at('signed'));
  bytes.writeUInt32BE(1, 8);
  writeFileSync(at('without'), bytes.subarray(0, bytes.length - bytes.readUInt32BE(bytes.length - 4) - 68));
  expect((await read(at('without'))).get('node')?.toString()).toBe('a node');
  const without = await readBackupHead(at('without'));
  expect(() => requireSigner('it', without, mine)).toThrow(/not authentic: it has no signature/);
});

test('a backup of format 1, as earlier versions wrote it, is read', async () => {
  const found = JSON.parse(readFileSync(join(import.meta.dirname, 'backup-format-1.json'), 'utf8')) as {
    readonly recoveryKey: string;
    readonly backup: string;
  };
  writeFileSync(at('recovery.key'), Buffer.from(found.recoveryKey, 'base64'), { mode: 0o600 });
  writeFileSync(at('format-1'), Buffer.from(found.backup, 'base64'));
  const recovery = await openRecoveryKeyFile(core, at('recovery.key'), () => Promise.resolve(Buffer.alloc(0)));
  const parts = await read(at('format-1'), recovery.id, recovery.key);
  expect([...parts].map(([name, bytes]) => `${name}: ${bytes}`)).toEqual(['node: a node', 'database: a database']);
  expect((await readBackupHead(at('format-1'))).closing).toBeNull();
});

test('where the audit log was given, it names the backups: what a former key signs is none of them', async () => {
  const rotated = signerOf('dke/audit/one');
  const { digest } = await write('before the rotation', random(10));
  await write('after the rotation', random(10));
  const trust = { verifier: verifierOf(rotated.verifierKey), logged: new Set([digest]) };
  requireSigner('it', await readBackupHead(at('before the rotation')), trust);
  const later = await readBackupHead(at('after the rotation'));
  expect(() => requireSigner('it', later, trust)).toThrow(/not authentic: the audit log does not name it/);
});

/** A backup whose stream is any text: who has the public recovery key can write one. */
const writeStream = (name: string, stream: Buffer): void => {
  const own = core.generateGeneric(32);
  const { id, publicKey } = publicOf(owner);
  const { info, aad } = backupContext(named.backupId, id);
  const sealedKey = core.hpkeSealKey(publicKey, info, aad, own).toString('base64');
  const preface = Buffer.from(canonicalJson({ ...named, recipients: [{ recoveryKeyId: id, sealedKey }] }));
  const key = core.hkdf(
    own,
    'sha256',
    createHash('sha256').update(preface).digest(),
    labelBytes('dke backup 1'),
    'aes',
    32,
  );
  const sealed = Buffer.alloc(stream.length + 16);
  const iv = Buffer.alloc(12);
  iv[11] = 1;
  core.cipher(key, 'encrypt', { algorithm: 'aes-gcm', iv, tagLength: 16 }, stream, sealed);
  const head = Buffer.from('DKE-BKUP\0\0\0\u0001\0\0\0\0', 'latin1');
  head.writeUInt32BE(preface.length, 12);
  writeFileSync(at(name), Buffer.concat([head, preface, sealed]));
  for (const each of [own, key]) core.release(each);
};
test('a backup for more recovery keys than its head has room for is refused when it is made, and one for all that can be registered is read', async () => {
  const write = (name: string, number: number) => {
    const keys = Array.from({ length: number }, (_, id) => ({
      ...publicOf(owner),
      id: id.toString(16).padStart(16, '0'),
    }));
    return writeBackup(core, at(name), named, keys, [], service);
  };
  await write('many keys', mostRecoveryKeys);
  expect((await readBackupHead(at('many keys'))).preface.recipients).toHaveLength(mostRecoveryKeys);
  await expect(write('too many keys', 2 * mostRecoveryKeys)).rejects.toMatchObject({
    ...{ code: 'conflict', hint: expect.stringContaining('dke recovery-key remove') },
  });
  expect(existsSync(at('too many keys'))).toBe(false);
});

test('any stream is read, or refused as damaged', async () => {
  writeStream('any', Buffer.from('{"bytes":2,"name":"node"}\nok'));
  expect((await read(at('any'))).get('node')?.toString()).toBe('ok');
  const line = fc.oneof(
    fc.json(),
    fc
      .record({
        bytes: fc.oneof(fc.nat(20), fc.constantFrom(-1, 0.5, 2 ** 53, '1', null)),
        name: fc.constantFrom('a', 'b', '', 7),
      })
      .map((header) => JSON.stringify(header)),
    fc.string({ maxLength: 1100 }),
  );
  const stream = fc.array(fc.tuple(line, fc.constantFrom('\n', ''), fc.string({ maxLength: 20 })), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(stream, async (parts) => {
      writeStream('any', Buffer.from(parts.map((part) => part.join('')).join('')));
      const outcome = await read(at('any')).then(
        () => 'read',
        (error: unknown) => (error instanceof ServiceError ? error.code : error),
      );
      expect(['read', 'key-tampered']).toContain(outcome);
    }),
    { numRuns: 100 },
  );
});
