// addon/FORMAT.md, sections 5 and 6, is sufficient to read the files: a second implementation,
// written from the document only with Node's own cryptography, agrees with the product on the
// document's vectors.
import {
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hkdfSync,
  scryptSync,
  verify,
} from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openArchive } from '../../../server/adapters/archives/archive.ts';
import { parseVerifierKey } from '../../../server/base/checkpoint.ts';
import { parseRecoveryKey, recoveryKeyId } from '../../../server/base/recovery-key.ts';
import { describeRecoveryKeyFile, openRecoveryKeyFile } from '../../../server/cli/service/recovery-key-file.ts';
import { core, withKey } from '../../support/core-keys.ts';
import { openSnapshotKey } from '../../support/snapshot-files.ts';

const page = readFileSync(join(import.meta.dirname, '../../../addon/FORMAT.md'), 'utf8');
const vector = (name: string): ((member: string) => string) => {
  const [, lines = ''] = new RegExp(`^\`\`\`vector ${name}\n([^\`]*)\`\`\`$`, 'm').exec(page) ?? [];
  const members = new Map(
    lines
      .split('\n')
      .map((line): [string, string] => [line.split(' = ')[0] ?? '', line.slice(line.indexOf(' = ') + 3)]),
  );
  return (member) => {
    const value = members.get(member);
    if (value === undefined) throw new Error(`the vector ${name} has no ${member}`);
    return value;
  };
};
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
const hkdf = (key: Uint8Array, salt: Uint8Array, info: string | Uint8Array, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, info, length));
const gcm = (key: Buffer, nonce: Buffer, aad: Buffer, sealed: Buffer): Buffer => {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce);
  decipher.setAAD(aad);
  decipher.setAuthTag(sealed.subarray(-16));
  return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
};
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Section 1. */
const openRecord = (
  kek: Buffer,
  context: {
    readonly tenant: Buffer;
    readonly object: Buffer;
    readonly version: number;
    readonly class: string;
    readonly attributes: Buffer;
  },
  record: Buffer,
): Buffer => {
  const derived = hkdf(kek, record.subarray(46, 78), 'dke key record 1', 76);
  const fields = [
    Buffer.from([1]),
    Buffer.from([0]),
    u32(1),
    context.tenant,
    context.object,
    u32(context.version),
    Buffer.from(context.class),
    context.attributes,
  ];
  const aad = Buffer.concat(fields.flatMap((field) => [u32(field.length), field]));
  return gcm(derived.subarray(0, 32), derived.subarray(32, 44), aad, record.subarray(122));
};

/** RFC 9180, mode_base, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. */
const openHpke = (secret: Buffer, info: Buffer, aad: Buffer, sealed: Buffer): Buffer => {
  const own = createPrivateKey({
    format: 'der',
    type: 'pkcs8',
    key: Buffer.concat([hex('302e020100300506032b656e04220420'), secret]),
  });
  const peer = createPublicKey({
    format: 'der',
    type: 'spki',
    key: Buffer.concat([hex('302a300506032b656e032100'), sealed.subarray(0, 32)]),
  });
  const ownPublic = createPublicKey(own).export({ format: 'der', type: 'spki' }).subarray(-32);
  const hmacExtract = (salt: Buffer, ikm: Buffer): Buffer => Buffer.from(hkdfExtract(salt, ikm));
  const labeledExtract = (suite: Buffer, salt: Buffer, label: string, ikm: Buffer): Buffer =>
    hmacExtract(salt, Buffer.concat([Buffer.from('HPKE-v1'), suite, Buffer.from(label), ikm]));
  const labeledExpand = (suite: Buffer, prk: Buffer, label: string, context: Buffer, length: number): Buffer =>
    hkdfExpand(
      prk,
      Buffer.concat([
        Buffer.from([length >> 8, length & 255]),
        Buffer.from('HPKE-v1'),
        suite,
        Buffer.from(label),
        context,
      ]),
      length,
    );
  const kem = Buffer.concat([Buffer.from('KEM'), hex('0020')]);
  const suite = Buffer.concat([Buffer.from('HPKE'), hex('002000010002')]);
  const dh = diffieHellman({ privateKey: own, publicKey: peer });
  const shared = labeledExpand(
    kem,
    labeledExtract(kem, Buffer.alloc(0), 'eae_prk', dh),
    'shared_secret',
    Buffer.concat([sealed.subarray(0, 32), ownPublic]),
    32,
  );
  const none = Buffer.alloc(0);
  const context = Buffer.concat([
    Buffer.from([0]),
    labeledExtract(suite, none, 'psk_id_hash', none),
    labeledExtract(suite, none, 'info_hash', info),
  ]);
  const prk = labeledExtract(suite, shared, 'secret', none);
  return gcm(
    labeledExpand(suite, prk, 'key', context, 32),
    labeledExpand(suite, prk, 'base_nonce', context, 12),
    aad,
    sealed.subarray(32),
  );
};
const hmac = (key: Buffer, data: Buffer): Buffer => {
  const block = Buffer.alloc(64);
  (key.length > 64 ? sha256(key) : key).copy(block);
  const inner = sha256(Buffer.concat([block.map((byte) => byte ^ 0x36), data]));
  return sha256(Buffer.concat([block.map((byte) => byte ^ 0x5c), inner]));
};
const hkdfExtract = (salt: Buffer, ikm: Buffer): Buffer => hmac(salt.length === 0 ? Buffer.alloc(32) : salt, ikm);
// One block of HMAC output is enough: no caller requests more than 32 bytes.
const hkdfExpand = (prk: Buffer, info: Buffer, length: number): Buffer =>
  hmac(prk, Buffer.concat([info, Buffer.from([1])])).subarray(0, length);

const idBytes = (id: string): Buffer => hex(id.replaceAll('-', ''));

describe('a snapshot', () => {
  const of = vector('snapshot');
  const file = hex(of('file'));
  const prefaceLength = file.readUInt32BE(12);
  const preface = file.subarray(16, 16 + prefaceLength);
  const said = JSON.parse(preface.toString()) as {
    readonly snapshotId: string;
    readonly tenantId: string;
    readonly recipients: readonly { readonly recoveryKeyId: string; readonly sealedKey: string }[];
  };
  const segment = file.subarray(16 + prefaceLength);
  const [slots, ciphertextLength] = [segment.readUInt32BE(0), segment.readUInt32BE(4)];
  const slot = segment.subarray(8, 8 + 219);
  const ciphertext = segment.subarray(8 + 219, 8 + 219 + ciphertextLength);
  const end = segment.subarray(8 + 219 + ciphertextLength);

  test('reads by the document', () => {
    expect(file.toString('latin1', 0, 8)).toBe('DKE-SNAP');
    expect([file.readUInt32BE(8), slots]).toEqual([1, 1]);
  });

  test('opens by the document, with the recovery key alone', () => {
    const [recipient] = said.recipients;
    expect(recipient?.recoveryKeyId).toBe(of('recoveryKeyId'));
    const aad = `{"recoveryKeyId":"${of('recoveryKeyId')}","snapshotId":"${said.snapshotId}","tenantId":"${said.tenantId}"}`;
    const key = openHpke(
      hex(of('recipientPrivate')),
      Buffer.from('dke snapshot key 1'),
      Buffer.from(aad),
      Buffer.from(recipient?.sealedKey ?? '', 'base64'),
    );
    expect(key).toEqual(hex(of('snapshotKey')));
    const salt = sha256(preface);
    const unitKey = openRecord(
      hkdf(key, salt, 'dke snapshot 1 units', 32),
      {
        tenant: idBytes(said.tenantId),
        object: idBytes(of('unit')),
        version: 1,
        class: 'snapshot-unit',
        attributes: idBytes(said.snapshotId),
      },
      slot.subarray(48),
    );
    expect(unitKey).toEqual(Buffer.concat([Buffer.from([3]), hex(of('unitKey'))]));
    expect(slot.subarray(0, 16)).toEqual(idBytes(of('unit')));
    expect(slot.subarray(16, 48)).toEqual(sha256(slot.subarray(48)));

    const plain = gcm(
      hkdf(key, salt, 'dke snapshot 1 rows', 32),
      Buffer.concat([u32(0), u32(0), u32(1)]),
      sha256(slot.subarray(0, 48)),
      ciphertext,
    );
    const [row, material = ''] = plain.toString().split('\n');
    expect(row).toBe(of('row'));
    const { record, ...line } = JSON.parse(material) as { readonly record: string; readonly attributes: string };
    expect(line).toEqual({
      attributes: '{"algorithm":"aes","bits":256}',
      check: expect.stringMatching(/^[0-9a-f]{6}$/),
      copies: ['vault-copy', 'sealed-copy'],
      unit: of('unit'),
      version: 7,
    });
    const value = openRecord(
      unitKey.subarray(1),
      {
        tenant: idBytes(said.tenantId),
        object: idBytes(of('unit')),
        version: 7,
        class: 'snapshot-material',
        attributes: Buffer.from(line.attributes),
      },
      Buffer.from(record, 'base64'),
    );
    expect(value).toEqual(Buffer.concat([Buffer.from([1]), hex(of('key'))]));
  });

  test('is signed as the document says', () => {
    const length = end.readUInt32BE(4);
    expect(end.readUInt32BE(0)).toBe(0xffff_ffff);
    const closing = end.subarray(8, 8 + length);
    const signer = parseVerifierKey(of('signer'));
    expect(signer).not.toBeNull();
    if (signer === null) return;
    const text = Buffer.concat([Buffer.from('dke snapshot 1\n'), closing]);
    expect(verify(null, text, signer.key, end.subarray(8 + length))).toBe(true);
    const digest = sha256(
      Buffer.concat([file.subarray(0, 16 + prefaceLength), segment.subarray(0, 8), slot.subarray(0, 48), ciphertext]),
    );
    expect((JSON.parse(closing.toString()) as { readonly digest: string }).digest).toBe(digest.toString('base64'));
  });

  test('is read by the product, and erased differs in one record', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-vector-'));
    const archive = openArchive(core, folder);
    const path = join(folder, `${said.snapshotId}.dkesnap`);
    const signer = parseVerifierKey(of('signer'));
    const trusted = [Buffer.from(signer?.key.export({ format: 'jwk' }).x ?? '', 'base64url')];
    const recovery = core.importPrivateKey(
      Buffer.concat([hex('302e020100300506032b656e04220420'), hex(of('recipientPrivate'))]),
    );
    try {
      for (const [name, erasedAt] of [
        ['file', null],
        ['erasedFile', Number(of('erasedAt'))],
      ] as const) {
        writeFileSync(path, hex(of(name)));
        const { erased } = await archive.inspect(said.snapshotId, trusted);
        expect(erased).toEqual(erasedAt === null ? [] : [{ id: of('unit'), at: erasedAt }]);
        const key = openSnapshotKey(await archive.preface(said.snapshotId), { key: recovery, id: of('recoveryKeyId') });
        for await (const item of archive.items(said.snapshotId, key, trusted)) {
          if (item.kind !== 'material') continue;
          expect(item.erasedAt).toBe(erasedAt);
          if (item.key !== null) withKey(item.key, (ref) => expect(core.exportSecret(ref)).toEqual(hex(of('key'))));
        }
        core.release(key);
      }
      const [before, after] = [hex(of('file')), hex(of('erasedFile'))];
      const at = 16 + prefaceLength + 8 + 48;
      expect(after.subarray(0, at)).toEqual(before.subarray(0, at));
      expect(after.subarray(at + 171)).toEqual(before.subarray(at + 171));
      expect(after.toString('latin1', at, at + 4)).toBe('GONE');
    } finally {
      core.release(recovery);
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a recovery key file', () => {
  const of = vector('recovery key');
  const file = hex(of('file'));
  const folder = mkdtempSync(join(tmpdir(), 'dke-vector-'));
  const path = join(folder, 'recovery.key');
  afterAll(() => rmSync(folder, { recursive: true }));
  const place = (bytes: Buffer, mode = 0o600): void => {
    writeFileSync(path, bytes);
    chmodSync(path, mode);
  };
  const open = async (passphrase: string): Promise<string> => {
    try {
      const { key, id } = await openRecoveryKeyFile(core, path, () => Promise.resolve(Buffer.from(passphrase)));
      expect(core.hpkePublicKey(key)).toEqual(file.subarray(48, 80));
      core.release(key);
      return id;
    } catch (error) {
      return error instanceof Error ? error.message : 'failed';
    }
  };

  test('opens by the document', () => {
    expect(file).toHaveLength(267);
    const [cost = 0, r, p] = file.subarray(12, 16);
    const kek = scryptSync(hex(of('passphrase')), file.subarray(16, 48), 32, {
      N: 2 ** cost,
      r: r ?? 0,
      p: p ?? 0,
      maxmem: 2 ** 28,
    });
    const head = file.subarray(0, 80);
    const object = sha256(file.subarray(48, 80)).subarray(0, 16);
    const value = openRecord(
      kek,
      { tenant: Buffer.alloc(16), object, version: 1, class: 'recovery-key', attributes: head },
      file.subarray(80),
    );
    expect(value.subarray(-32)).toEqual(hex(of('private')));
    expect(recoveryKeyId(file.subarray(48, 80))).toBe(of('id'));
    expect(parseRecoveryKey(of('publicText'))?.publicKey).toEqual(file.subarray(48, 80));
  });

  test('opens with its passphrase and no other', async () => {
    place(file);
    expect(describeRecoveryKeyFile(path)).toEqual({ id: of('id'), publicKey: of('publicText'), passphrase: true });
    expect(await open(hex(of('passphrase')).toString())).toBe(of('id'));
    expect(await open('Correct horse')).toContain('passphrase is wrong');
  });

  test('is refused when anything of it was changed or cut, or others can read it', async () => {
    // Where scrypt's numbers stand, a change is more work, not another answer: they are tried once
    // each.
    for (const at of [0, 11, 16, 79, 90, 250]) {
      const changed = Buffer.from(file);
      changed[at] = (changed[at] ?? 0) ^ 1;
      place(changed);
      expect([at, await open(hex(of('passphrase')).toString())]).not.toEqual([at, of('id')]);
    }
    place(file.subarray(0, 200));
    expect(await open(hex(of('passphrase')).toString())).toContain('cannot be opened');
    place(file, 0o644);
    expect(await open('x')).toContain('can be read by others');
  });

  test('a public half with a slip of the pen is noticed', () => {
    const text = of('publicText');
    const accepted = [...text].flatMap((letter, at) => {
      const other = letter === 'A' ? 'B' : letter === 'b' ? 'c' : 'A';
      return letter === other || parseRecoveryKey(`${text.slice(0, at)}${other}${text.slice(at + 1)}`) === null
        ? []
        : [at];
    });
    expect(accepted).toEqual([]);
  });
});
