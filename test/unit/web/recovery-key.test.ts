// A recovery key as the console's pages open it: the vectors of addon/FORMAT.md, sections 1, 4, 5
// and 6, by the browser's cryptography, and what is refused. The browser test
// (test/scenario/console-restore.test.ts) shows that the service accepts the sealed keys of the
// pages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Key, open, seal } from '../../../server/clients/web/src/recovery/hpke.ts';
import { answerOpening, describeFile, openRecord } from '../../../server/clients/web/src/recovery/recovery-key.ts';

const format = readFileSync(join(import.meta.dirname, '../../../addon/FORMAT.md'), 'utf8');
const readVector = (name: string): ((member: string) => string) => {
  const [, text = ''] = new RegExp(`^\`\`\`vector ${name}\\n([^\`]*)\`\`\`$`, 'm').exec(format) ?? [];
  const members = new Map(text.split('\n').map((line) => line.split(' = ') as [string, string | undefined]));
  return (member) => {
    const value = members.get(member);
    if (value === undefined) throw new Error(`the vector ${name} has no ${member}`);
    return value;
  };
};
const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, 'hex'));
/** RFC 8410: the bytes before the 32 bytes of an X25519 key in PKCS#8. */
const privateKey = (raw: string): Promise<Key> =>
  crypto.subtle.importKey('pkcs8', bytes(`302e020100300506032b656e04220420${raw}`), 'X25519', false, ['deriveBits']);

describe('hpke', () => {
  const vector = readVector('hpke');
  const context = { info: bytes(vector('info')), aad: bytes(vector('aad')) };

  test('opens the vector', async () => {
    const own = await privateKey(vector('recipientPrivate'));
    const opened = await open(own, bytes(vector('recipient')), bytes(vector('sealed')), context);
    expect(Buffer.from(opened).toString('hex')).toBe(vector('plaintext'));
  });

  test('opens what it has sealed, and nothing that was changed', async () => {
    const own = await privateKey(vector('recipientPrivate'));
    const recipient = bytes(vector('recipient'));
    const sealed = await seal(recipient, bytes('00112233'), context);
    expect(sealed).toHaveLength(32 + 4 + 16);
    expect(Buffer.from(await open(own, recipient, sealed, context)).toString('hex')).toBe('00112233');
    for (const at of [0, 33, sealed.length - 1]) {
      const changed = sealed.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      await expect(open(own, recipient, changed, context)).rejects.toThrow();
    }
    await expect(open(own, recipient, sealed, { ...context, aad: bytes('00') })).rejects.toThrow();
  });

  test('a public key of low order is refused', async () => {
    await expect(seal(new Uint8Array(32), bytes('00'), context)).rejects.toThrow();
  });
});

test.each(['aes', 'kek', 'generic', 'ed25519'])('the key record %s opens', async (name) => {
  const vector = readVector(`record ${name}`);
  const place = {
    tenant: bytes(vector('tenant')),
    object: bytes(vector('object')),
    version: Number(vector('version')),
    epoch: Number(vector('epoch')),
  };
  const { kind, value } = await openRecord(
    bytes(vector('kek')),
    bytes(vector('record')),
    place,
    vector('class'),
    bytes(name === 'generic' ? '' : vector('attributes')),
  );
  expect([kind, Buffer.from(value).toString('hex')]).toEqual([Number(vector('kind')), vector('value')]);
  const elsewhere = { ...place, version: place.version + 1 };
  await expect(
    openRecord(bytes(vector('kek')), bytes(vector('record')), elsewhere, vector('class'), bytes('')),
  ).rejects.toThrow('cannot be opened');
});

describe('the file of a recovery key', () => {
  const vector = readVector('recovery key');
  const snapshot = readVector('snapshot');
  const file = bytes(vector('file'));
  const passphrase = (): Uint8Array<ArrayBuffer> => bytes(vector('passphrase'));
  const snapshotFile = Buffer.from(snapshot('file'), 'hex');
  const preface = JSON.parse(snapshotFile.subarray(16, 16 + snapshotFile.readUInt32BE(12)).toString('utf8')) as {
    readonly snapshotId: string;
    readonly tenantId: string;
    readonly recipients: readonly { readonly sealedKey: string }[];
  };

  const openingOf = async () => {
    const pair = await crypto.subtle.generateKey('X25519', true, ['deriveBits']);
    if (!('privateKey' in pair)) throw new Error('that is not a pair');
    const publicKey = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
    const opening = {
      id: 'opening-1',
      snapshotId: preface.snapshotId,
      tenantId: preface.tenantId,
      sealedKey: preface.recipients[0]?.sealedKey ?? '',
      publicKey: Buffer.from(publicKey).toString('base64'),
    };
    return { opening, publicKey, own: pair.privateKey };
  };

  test('says what it is', () => {
    expect(describeFile(file)).toMatchObject({ id: vector('id'), wantsPassphrase: true });
    expect(() => describeFile(file.slice(0, 90))).toThrow('not a recovery key');
    const later = file.slice();
    later[11] = 2;
    expect(() => describeFile(later)).toThrow('does not support the format');
  });

  test("answers an opening with the snapshot's own key, bound to this opening; the passphrase is wiped", async () => {
    const { opening, publicKey, own } = await openingOf();
    const given = passphrase();
    const answer = await answerOpening(file, given, opening);
    expect(given.every((byte) => byte === 0)).toBe(true);
    const sealed = new Uint8Array(Buffer.from(answer, 'base64'));
    const text = new TextEncoder();
    const contextOf = (openingId: string) => ({
      info: text.encode('dke snapshot opening 1'),
      aad: text.encode(JSON.stringify({ openingId, snapshotId: preface.snapshotId })),
    });
    const opened = await open(own, publicKey, sealed, contextOf('opening-1'));
    expect(Buffer.from(opened).toString('hex')).toBe(snapshot('snapshotKey'));
    await expect(open(own, publicKey, sealed, contextOf('opening-2'))).rejects.toThrow();
  });

  test('a wrong passphrase, a changed file and a snapshot of another key have different errors', async () => {
    const { opening } = await openingOf();
    const wrong = bytes('00');
    await expect(answerOpening(file, wrong, opening)).rejects.toThrow(
      'the passphrase is wrong, or the file was changed',
    );
    const changed = file.slice();
    changed[file.length - 1] = (changed[file.length - 1] ?? 0) ^ 1;
    await expect(answerOpening(changed, passphrase(), opening)).rejects.toThrow('cannot be opened');
    // This file requires scrypt with N = 2^40, at least 128 TiB of memory.
    const greedy = file.slice();
    greedy[12] = 40;
    await expect(answerOpening(greedy, passphrase(), opening)).rejects.toThrow('cannot be opened');
    const moved = { ...opening, tenantId: '00000000-0000-4000-8000-000000000000' };
    await expect(answerOpening(file, passphrase(), moved)).rejects.toThrow('does not open the snapshot');
  });
});
