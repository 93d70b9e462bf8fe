// addon/FORMAT.md is sufficient to read the files of the core: a second implementation, written
// from the document only with Node's own cryptography, agrees with the core on the document's
// vectors and on newly sealed data.
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, scryptSync } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { KekRef, RecordContext } from '../../../addon/core.ts';
import { readWrapped, unlockWrapped } from '../../../server/adapters/roots/wrapped-file.ts';
import { wrappedRoot } from '../../../server/adapters/roots/wrapped-root.ts';
import { core, genericKey, withKey } from '../../support/core-keys.ts';
import { folderOfTest } from '../../support/folders.ts';
import { hex } from '../../support/vectors.ts';

const text = readFileSync(join(import.meta.dirname, '../../../addon/FORMAT.md'), 'utf8');

class Vector {
  readonly name: string;
  readonly #members: ReadonlyMap<string, string>;
  constructor(name: string, lines: string) {
    this.name = name;
    this.#members = new Map(
      lines
        .trim()
        .split('\n')
        .map((line) => {
          const [member, value = ''] = line.split(/ = ?/);
          return [member ?? '', value];
        }),
    );
  }
  text(member: string): string {
    const value = this.#members.get(member);
    if (value === undefined) throw new Error(`the vector ${this.name} has no ${member}`);
    return value;
  }
  bytes(member: string): Buffer {
    return hex(this.text(member));
  }
  number(member: string): number {
    return Number(this.text(member));
  }
}
const vectors = [...text.matchAll(/^```vector (.+)\n([^`]*)```$/gm)].map(
  ([, name = '', lines = '']) => new Vector(name, lines),
);
const vectorOf = (name: string): Vector => {
  const found = vectors.find((vector) => vector.name === name);
  if (found === undefined) throw new Error(`FORMAT.md has no vector ${name}`);
  return found;
};
const records = vectors.filter(({ name }) => name.startsWith('record '));

const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Section 1, from the document. */
const deriveRecordKeys = (kek: Uint8Array, salt: Uint8Array) => {
  const derived = Buffer.from(hkdfSync('sha256', kek, salt, 'dke key record 1', 76));
  return { key: derived.subarray(0, 32), nonce: derived.subarray(32, 44), commitment: derived.subarray(44, 76) };
};
const additionalData = (context: RecordContext): Buffer =>
  Buffer.concat(
    [
      Buffer.from([1]),
      Buffer.from([0]),
      u32(context.epoch),
      context.tenant,
      context.object,
      u32(context.version),
      Buffer.from(context.class),
      context.attributes,
    ].flatMap((field) => [u32(field.length), field]),
  );
const openByDocument = (kek: Uint8Array, context: RecordContext, record: Buffer): Buffer => {
  expect(record.toString('latin1', 0, 4)).toBe('DKE1');
  expect(record.subarray(4, 46)).toEqual(
    Buffer.concat([Buffer.from([1, 0]), u32(context.epoch), context.tenant, context.object, u32(context.version)]),
  );
  const { key, nonce, commitment } = deriveRecordKeys(kek, record.subarray(46, 78));
  expect(record.subarray(78, 122)).toEqual(Buffer.concat([nonce, commitment]));
  const decipher = createDecipheriv('aes-256-gcm', key, nonce);
  decipher.setAAD(additionalData(context));
  decipher.setAuthTag(record.subarray(-16));
  return Buffer.concat([decipher.update(record.subarray(122, -16)), decipher.final()]);
};

const contextOf = (vector: Vector): RecordContext => ({
  tenant: vector.bytes('tenant'),
  object: vector.bytes('object'),
  version: vector.number('version'),
  epoch: vector.number('epoch'),
  class: vector.text('class'),
  attributes: vector.bytes('attributes'),
});

describe('key record, format 1', () => {
  test('the document has a vector for a data key, a KEK, a short secret and a private key', () => {
    expect(records.map((vector) => vector.number('kind'))).toEqual([1, 3, 2, 8]);
  });

  test.each(records.map((vector) => [vector.name, vector] as const))('%s: document and core agree', (_, vector) => {
    const context = contextOf(vector);
    const plain = openByDocument(vector.bytes('kek'), context, vector.bytes('record'));
    expect(plain).toEqual(Buffer.concat([Buffer.from([vector.number('kind')]), vector.bytes('value')]));
    withKey(core.importSecret('kek', vector.bytes('kek')), (kek) => {
      withKey(core.openRecord(kek, context, vector.bytes('record')), (key) => {
        const { kind } = core.describe(key);
        expect(kind).toBe({ 1: 'aes', 2: 'generic', 3: 'kek', 8: 'ed25519-private' }[vector.number('kind')]);
        // A KEK and a private key cannot be read: data that are sealed under them show their
        // identity.
        if (kind === 'aes' || kind === 'generic') expect(core.exportSecret(key)).toEqual(vector.bytes('value'));
        expect(openByDocument(vector.bytes('kek'), context, core.sealRecord(kek, context, key))).toEqual(plain);
      });
    });
  });

  test('a record of a 32-byte key has the length that the document says', () => {
    expect(text).toContain('A record of a 32-byte key has 171 bytes');
    expect(vectorOf('record aes').bytes('record')).toHaveLength(171);
  });

  test('the head can be read without the key', () => {
    for (const vector of records) {
      const { epoch, version } = core.peekRecord(vector.bytes('record'));
      expect([epoch, version]).toEqual([vector.number('epoch'), vector.number('version')]);
    }
  });

  test('a change, a cut and an unknown format are refused by their own names', () => {
    const vector = vectorOf('record aes');
    const context = contextOf(vector);
    const record = vector.bytes('record');
    withKey(core.importSecret('kek', vector.bytes('kek')), (kek) => {
      const codeOf = (changed: Uint8Array): string => {
        try {
          core.release(core.openRecord(kek, context, changed));
          return 'opened';
        } catch (error) {
          return (error as { code: string }).code;
        }
      };
      const flipped = (at: number): Buffer =>
        Buffer.from(record.map((byte, index) => (index === at ? byte ^ 1 : byte)));
      expect(codeOf(record)).toBe('opened');
      for (let at = 0; at < record.length; at++)
        expect([at, codeOf(flipped(at))]).toEqual([at, at < 6 ? 'format' : 'authentication-failed']);
      for (let length = 0; length < record.length; length++)
        expect(codeOf(record.subarray(0, length))).toMatch(/^(format|authentication-failed)$/);
      expect(() => core.peekRecord(flipped(3))).toThrow('a format that this version does not know');
      expect(() => core.peekRecord(flipped(0))).toThrow('this is not a key record');
    });
  });
});

describe('root key file, format 1', () => {
  const opened = (file: Buffer): { readonly epoch: number; readonly key: KekRef } => {
    const folder = folderOfTest();
    const path = join(folder, 'root.key');
    writeFileSync(path, file);
    chmodSync(path, 0o400);
    return core.openRootFile(path).current;
  };

  test('a file written after the document holds the document’s key', () => {
    const vector = vectorOf('root slot');
    const body = Buffer.concat([Buffer.from('SLOT'), u32(vector.number('epoch')), vector.bytes('key')]);
    const slot = Buffer.concat([body, createHash('sha256').update(body).digest()]);
    expect(slot).toEqual(vector.bytes('slot'));
    const file = Buffer.alloc(12_288);
    file.write('DKE-ROOT');
    file.writeUInt32BE(1, 8);
    slot.copy(file, 8192);
    const root = opened(file);
    expect(root.epoch).toBe(vector.number('epoch'));
    // The root key equals the vectors' KEK: it opens their records.
    const record = vectorOf('record kek');
    expect(record.bytes('kek')).toEqual(vector.bytes('key'));
    core.release(core.openRecord(root.key, contextOf(record), record.bytes('record')));
    core.release(root.key);
  });

  test('a file that the core makes reads as the document says', () => {
    const folder = folderOfTest();
    const path = join(folder, 'root.key');
    const made = core.createRootFile(path);
    const file = readFileSync(path);
    rmSync(folder, { recursive: true });
    const body = file.subarray(4096, 4136);
    expect(file.toString('latin1', 0, 8)).toBe('DKE-ROOT');
    expect(file.readUInt32BE(8)).toBe(1);
    expect(body.toString('latin1', 0, 4)).toBe('SLOT');
    expect(body.readUInt32BE(4)).toBe(1);
    expect(file.subarray(4136, 4168)).toEqual(createHash('sha256').update(body).digest());
    const context = contextOf(vectorOf('record aes'));
    const sealed = withKey(genericKey(Buffer.from('canary')), (key) => core.sealRecord(made.key, context, key));
    expect(openByDocument(body.subarray(8), context, sealed).toString('latin1')).toBe('\x02canary');
    core.release(made.key);
  });
});

describe('root key file, format 2', () => {
  const vector = vectorOf('wrapped root');
  const head = vector.bytes('head');
  const slots = [0, 1].map((index) => ({
    epoch: vector.number(`epoch${index}`),
    key: vector.bytes(`key${index}`),
    bytes: vector.bytes(`slot${index}`),
  }));
  const whole = (): Buffer => {
    const file = Buffer.alloc(24_576);
    head.copy(file);
    for (const [index, { bytes }] of slots.entries()) bytes.copy(file, 16_384 + 4096 * index);
    return file;
  };
  const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
  const { file, unlockEpoch, providers } = JSON.parse(head.subarray(16, -32).toString('utf8')) as {
    readonly file: string;
    readonly unlockEpoch: number;
    readonly providers: readonly {
      readonly id: string;
      readonly name: string;
      readonly type: string;
      readonly parameters: Readonly<Record<string, string | number>>;
      readonly unlock: string;
      readonly back: string;
    }[];
  };
  const recordContext = (what: string, object: string, version: number, epoch: number): RecordContext => ({
    tenant: hex(file),
    object: hex(object),
    version,
    epoch,
    class: what,
    attributes: Buffer.from('{"algorithm":"kek"}'),
  });
  /** A provider's key, from what its type needs. */
  const keyOf = ({ type, parameters: { salt, cost, r, p } }: (typeof providers)[number]): Buffer =>
    type === 'file'
      ? vector.bytes('keyFile')
      : scryptSync(vector.bytes('passphrase'), hex(String(salt)), 32, {
          N: 2 ** Number(cost),
          r: Number(r),
          p: Number(p),
          maxmem: 2 ** 28,
        });
  const kek = (value: Uint8Array): Buffer => Buffer.concat([Buffer.from([3]), value]);

  test('the document’s file opens by the document, with each provider', () => {
    expect(head.toString('latin1', 0, 8)).toBe('DKE-ROOT');
    expect(head.readUInt32BE(8)).toBe(2);
    expect(head.readUInt32BE(12)).toBe(head.length - 48);
    expect(head.subarray(-32)).toEqual(sha256(head.subarray(0, -32)));
    expect(providers.map(({ name, type }) => [name, type])).toEqual([
      ['words', 'passphrase'],
      ['key file', 'file'],
    ]);
    const unlock = vector.bytes('unlock');
    for (const provider of providers) {
      const own = keyOf(provider);
      const [opening, back] = [provider.unlock, provider.back].map((text) => Buffer.from(text, 'base64'));
      const under = recordContext('root-unlock', provider.id, unlockEpoch, 1);
      expect(openByDocument(own, under, opening ?? Buffer.alloc(0))).toEqual(kek(unlock));
      const behind = recordContext('root-provider', provider.id, 1, unlockEpoch);
      expect(openByDocument(unlock, behind, back ?? Buffer.alloc(0))).toEqual(kek(own));
    }
    for (const { epoch, key, bytes } of slots) {
      expect(bytes.toString('latin1', 0, 4)).toBe('SLOT');
      expect([bytes.readUInt32BE(4), bytes.readUInt32BE(8)]).toEqual([epoch, bytes.length - 44]);
      expect(bytes.subarray(-32)).toEqual(sha256(bytes.subarray(0, -32)));
      const context = recordContext('root-key', file, epoch, unlockEpoch);
      expect(openByDocument(unlock, context, bytes.subarray(12, -32))).toEqual(kek(key));
    }
  });

  test('the service opens it with each provider, as the same root keys; a new epoch is written as the document says', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-format-'));
    const path = join(folder, 'root.key');
    for (const provider of providers) {
      writeFileSync(path, whole(), { mode: 0o600 });
      const read = readWrapped(core, path);
      const entry = read.head.providers.find(({ name }) => name === provider.name);
      if (entry === undefined) throw new Error(`${provider.name} is not in the file`);
      const opened = withKey(core.importSecret('kek', keyOf(provider)), (key) => unlockWrapped(core, read, entry, key));
      expect(opened.roots.map(({ epoch }) => epoch)).toEqual([5, 4]);
      const root = wrappedRoot(core, opened);
      // The root keys are those of the document: the second implementation opens data that are
      // sealed under them.
      const context = contextOf(vectorOf('record aes'));
      for (const { epoch, key } of opened.roots) {
        const sealed = withKey(genericKey(Buffer.from('canary')), (canary) => core.sealRecord(key, context, canary));
        const value = slots.find((slot) => slot.epoch === epoch)?.key ?? Buffer.alloc(0);
        expect(openByDocument(value, context, sealed).toString('latin1')).toBe('\x02canary');
      }
      root.erasePrevious();
      root.addEpoch();
      const written = readFileSync(path);
      expect(written.subarray(0, 16_384)).toEqual(whole().subarray(0, 16_384));
      const slot = written.subarray(16_384, 20_480);
      const length = slot.readUInt32BE(8);
      expect([slot.toString('latin1', 0, 4), slot.readUInt32BE(4)]).toEqual(['SLOT', 6]);
      expect(slot.subarray(12 + length, 44 + length)).toEqual(sha256(slot.subarray(0, 12 + length)));
      const record = slot.subarray(12, 12 + length);
      const fresh = openByDocument(
        vector.bytes('unlock'),
        recordContext('root-key', file, 6, unlockEpoch),
        record,
      ).subarray(1);
      const canary = withKey(genericKey(Buffer.from('canary')), (key) =>
        core.sealRecord(root.current.key, context, key),
      );
      expect(openByDocument(fresh, context, canary).toString('latin1')).toBe('\x02canary');
      root.release();
    }
  });
});

describe('root key on its way to another node', () => {
  const vector = vectorOf('root key on its way');
  const proofContext = (sealed: Buffer): RecordContext => ({
    tenant: Buffer.alloc(16),
    object: hex(vector.text('nodeId').replaceAll('-', '')),
    version: 1,
    epoch: vector.number('oldEpoch'),
    class: 'root-parcel',
    attributes: Buffer.from(`{"rootEpoch":${vector.number('epoch')},"sealed":"${sealed.toString('hex')}"}`),
  });

  test('the core opens the document’s, for this node and epoch alone, and it is the root key', () => {
    const pkcs8 = Buffer.concat([hex('302e020100300506032b656e04220420'), vector.bytes('nodePrivate')]);
    const info = Buffer.from(vector.text('info'));
    withKey(core.importPrivateKey(pkcs8), (node) => {
      expect(core.hpkePublicKey(node)).toEqual(vector.bytes('node'));
      const open = (aad: string): KekRef => core.hpkeOpenKek(node, info, Buffer.from(aad), vector.bytes('sealed'));
      expect(vector.text('aad')).toBe(`${vector.text('nodeId')} ${vector.number('epoch')}`);
      expect(() => open(`${vector.text('nodeId')} 6`)).toThrow(
        expect.objectContaining({ code: 'authentication-failed' }),
      );
      withKey(open(vector.text('aad')), (root) => {
        const context = contextOf(vectorOf('record aes'));
        const sealed = withKey(genericKey(Buffer.from('canary')), (key) => core.sealRecord(root, context, key));
        expect(openByDocument(vector.bytes('key'), context, sealed).toString('latin1')).toBe('\x02canary');
      });
    });
  });

  test('its proof opens under the older root key, and not for another sealed key', () => {
    const [sealed, proof] = [vector.bytes('sealed'), vector.bytes('proof')];
    expect(openByDocument(vector.bytes('oldKey'), proofContext(sealed), proof)[0]).toBe(2);
    withKey(core.importSecret('kek', vector.bytes('oldKey')), (old) => {
      core.release(core.openRecord(old, proofContext(sealed), proof));
      const other = Buffer.from(sealed);
      other.writeUInt8(other.readUInt8(40) ^ 1, 40);
      expect(() => core.openRecord(old, proofContext(other), proof)).toThrow(
        expect.objectContaining({ code: 'authentication-failed' }),
      );
    });
  });
});

describe('XKS ciphertext metadata, layout 1', () => {
  const vector = vectorOf('xks ciphertext');
  const messageKey = (version: number, salt: Uint8Array): Buffer => {
    const binding = vector.bytes('binding');
    const input = [Buffer.from('dke xks 1'), u16(binding.length), binding, u32(version), salt];
    return createHmac('sha256', vector.bytes('key')).update(Buffer.concat(input)).digest();
  };
  const gcmAad = (aad: Buffer, metadata: Buffer): Buffer =>
    Buffer.concat([u16(aad.length), aad, Buffer.from([metadata.length]), metadata]);
  const base64 = (member: string): string => vector.bytes(member).toString('base64');
  const requestMetadata = {
    awsPrincipalArn: 'arn:aws:iam::123456789012:user/Alice',
    kmsKeyArn: 'arn:aws:kms:us-east-1:123456789012:key/k',
    kmsOperation: 'Decrypt',
    kmsRequestId: 'r-1',
  };
  const bodyOf = (operation: 'encrypt' | 'decrypt', body: object): number => {
    const parsed = core.xksParse(operation, Buffer.from(JSON.stringify({ requestMetadata, ...body })));
    if (!parsed.ok) throw new Error(parsed.message);
    return parsed.body;
  };

  test('the document’s ciphertext follows from the document', () => {
    const key = messageKey(vector.number('version'), vector.bytes('salt'));
    expect(key).toEqual(vector.bytes('messageKey'));
    const cipher = createCipheriv('aes-256-gcm', key, vector.bytes('iv'));
    cipher.setAAD(gcmAad(vector.bytes('aad'), vector.bytes('ciphertextMetadata')));
    expect(Buffer.concat([cipher.update(vector.bytes('plaintext')), cipher.final()])).toEqual(
      vector.bytes('ciphertext'),
    );
    expect(cipher.getAuthTag()).toEqual(vector.bytes('authenticationTag'));
  });

  test('the core decrypts the document’s ciphertext', () => {
    const body = bodyOf('decrypt', {
      encryptionAlgorithm: 'AES_GCM',
      ciphertext: base64('ciphertext'),
      initializationVector: base64('iv'),
      authenticationTag: base64('authenticationTag'),
      ciphertextMetadata: base64('ciphertextMetadata'),
      additionalAuthenticatedData: base64('aad'),
    });
    withKey(core.importSecret('aes', vector.bytes('key')), (key) => {
      const answer = JSON.parse(core.xksDecrypt(body, key, vector.bytes('binding')).toString()) as object;
      expect(answer).toEqual({ plaintext: base64('plaintext') });
    });
  });

  test('what the core encrypts is decrypted by the document', () => {
    const aad = vector.bytes('aad');
    const body = bodyOf('encrypt', {
      encryptionAlgorithm: 'AES_GCM',
      plaintext: base64('plaintext'),
      additionalAuthenticatedData: base64('aad'),
      ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
    });
    withKey(core.importSecret('aes', vector.bytes('key')), (key) => {
      const answer = JSON.parse(core.xksEncrypt(body, key, 513, vector.bytes('binding'))) as Record<string, string>;
      const part = (member: string): Buffer => Buffer.from(answer[member] ?? '', 'base64');
      const metadata = part('ciphertextMetadata');
      expect(metadata).toHaveLength(20);
      expect([...metadata.subarray(0, 4)]).toEqual([1, 0, 2, 1]);
      const decipher = createDecipheriv(
        'aes-256-gcm',
        messageKey(513, metadata.subarray(4)),
        part('initializationVector'),
      );
      decipher.setAAD(gcmAad(aad, metadata));
      decipher.setAuthTag(part('authenticationTag'));
      expect(Buffer.concat([decipher.update(part('ciphertext')), decipher.final()])).toEqual(vector.bytes('plaintext'));
      const parts = [aad, metadata, part('initializationVector'), part('ciphertext'), part('authenticationTag')];
      expect(part('ciphertextDataIntegrityValue')).toEqual(createHash('sha256').update(Buffer.concat(parts)).digest());
    });
  });
});
