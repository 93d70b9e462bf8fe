// KMS keys of origin EXTERNAL_KEY_STORE and what is done with them. Every plaintext is sealed
// twice: by an AES key of the cloud's own that never leaves the addon, then by the external key
// behind the proxy, which so never sees a plaintext. The encryption context is bound by both seals.
// Plaintexts come and go as buffers (secret-member.ts).
//
// CiphertextBlob: version (1 byte, 1), key id (16), lengths of iv and metadata (1 each), iv,
// metadata, tag (16), ciphertext. The ciphertext's plaintext: iv (12), AES-GCM ciphertext, tag
// (16). Left out: aliases, grants, policies, key deletion.

import { randomUUID } from 'node:crypto';
import { canonicalJson, toBase64 } from '../../base/bytes.ts';
import type { CloudCrypto, KeyRef } from './crypto.ts';
import { asException, KmsException } from './exceptions.ts';
import { bytes, encryptionContext, type Input, invalid, oneOf, optionalText, text } from './input.ts';
import type { KeyStore } from './key-stores.ts';
import type { KeyRequester, ProxyCiphertext, Requester } from './proxy.ts';

/** An answer; `plaintext` becomes its member Plaintext. */
export interface Answer {
  readonly members: object;
  readonly plaintext?: Buffer;
}

interface CloudKey {
  readonly id: string;
  readonly arn: string;
  readonly storeId: string;
  readonly xksKeyId: string;
  readonly description: string;
  readonly createdAt: number;
  readonly own: KeyRef;
}

export interface Keys {
  create(by: Requester, input: Input): Promise<Answer>;
  describe(input: Input): Answer;
  encrypt(by: Requester, input: Input, plaintext: Buffer | null): Promise<Answer>;
  decrypt(by: Requester, input: Input): Promise<Answer>;
  generateDataKey(by: Requester, input: Input, shown: boolean): Promise<Answer>;
  reEncrypt(by: Requester, input: Input): Promise<Answer>;
  inStore(storeId: string): boolean;
}

const algorithm = 'SYMMETRIC_DEFAULT';
const maxPlaintext = 4096;
const maxBlob = 6144;
const maxContext = 8192;
const blobVersion = 1;
const ivLength = 12;
const tagLength = 16;
const blobHead = 19;

const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');
const unreadable = (): KmsException =>
  new KmsException('InvalidCiphertextException', 'the ciphertext cannot be decrypted');

const writeBlob = (id: string, { iv, metadata, tag, ciphertext }: ProxyCiphertext): Buffer =>
  Buffer.concat([
    Buffer.from([blobVersion]),
    idBytes(id),
    Buffer.from([iv.length, metadata.length]),
    iv,
    metadata,
    tag,
    ciphertext,
  ]);

const readBlob = (blob: Buffer): { readonly id: string; readonly sealed: ProxyCiphertext } => {
  const ivEnd = blobHead + (blob[17] ?? 0);
  const metadataEnd = ivEnd + (blob[18] ?? 0);
  const tagEnd = metadataEnd + tagLength;
  const ivFits = blob[17] === 12 || blob[17] === 16;
  if (blob[0] !== blobVersion || !ivFits || (blob[18] ?? 0) > 20 || blob.length < tagEnd + ivLength + tagLength)
    throw unreadable();
  const id = blob.toString('hex', 1, 17).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return {
    id,
    sealed: {
      iv: blob.subarray(blobHead, ivEnd),
      metadata: blob.subarray(ivEnd, metadataEnd),
      tag: blob.subarray(metadataEnd, tagEnd),
      ciphertext: blob.subarray(tagEnd),
    },
  };
};

/** What both seals bind; no bytes for an empty context, one form for one context otherwise. */
const bindingOf = (input: Input, name = 'EncryptionContext'): Buffer => {
  const context = encryptionContext(input, name);
  const binding = Object.keys(context).length === 0 ? Buffer.alloc(0) : Buffer.from(canonicalJson(context));
  if (binding.length > maxContext) throw invalid(`${name} is longer than ${maxContext} bytes`);
  return binding;
};

export interface KeyOptions {
  readonly crypto: CloudCrypto;
  readonly storeOf: (id: string) => KeyStore;
  /** `arn:aws:kms:<region>:<account>:key/` */
  readonly arnPrefix: string;
  readonly accountId: string;
  readonly clock: () => number;
}

type Keyed = Pick<KeyOptions, 'crypto' | 'storeOf'> & { readonly find: (id: string) => CloudKey | undefined };

/** Plaintexts to blobs and back, through the proxy of the key's store. */
const createSealing = ({ crypto, storeOf, find }: Keyed) => {
  /** The store that the key is used through: only a connected one. */
  const connected = (key: CloudKey): KeyStore => {
    const store = storeOf(key.storeId);
    if (store.state !== 'CONNECTED')
      throw new KmsException('KMSInvalidStateException', `the key's custom key store is ${store.state}`);
    return store;
  };
  const requesterOf = (by: Requester, key: CloudKey): KeyRequester => ({ ...by, kmsKeyArn: key.arn });

  const seal = async (by: Requester, key: CloudKey, plaintext: Uint8Array, binding: Buffer): Promise<Buffer> => {
    const { proxy } = connected(key);
    const inner = Buffer.alloc(ivLength + plaintext.length + tagLength);
    const iv = inner.subarray(0, ivLength);
    crypto.random(iv);
    const parameters = { algorithm: 'aes-gcm', iv, aad: binding, tagLength } as const;
    crypto.cipher(key.own, 'encrypt', parameters, plaintext, inner.subarray(ivLength));
    return writeBlob(
      key.id,
      await asException('use', () => proxy.encrypt(requesterOf(by, key), key.xksKeyId, inner, binding)),
    );
  };

  /** The caller wipes what it gets. `named` is the key that the caller says the blob is of. */
  const open = async (
    by: Requester,
    blob: Buffer,
    binding: Buffer,
    named: CloudKey | undefined,
  ): Promise<{ readonly key: CloudKey; readonly plaintext: Buffer }> => {
    const { id, sealed } = readBlob(blob);
    const key = find(id);
    if (key === undefined) throw unreadable();
    if (named !== undefined && named !== key)
      throw new KmsException('IncorrectKeyException', 'the ciphertext belongs to another KMS key');
    const { proxy } = connected(key);
    const inner = await asException('use', () => proxy.decrypt(requesterOf(by, key), key.xksKeyId, sealed, binding));
    const iv = inner.subarray(0, ivLength);
    const plaintext = Buffer.alloc(inner.length - ivLength - tagLength);
    try {
      const parameters = { algorithm: 'aes-gcm', iv, aad: binding, tagLength } as const;
      crypto.cipher(key.own, 'decrypt', parameters, inner.subarray(ivLength), plaintext);
    } catch {
      throw unreadable();
    }
    return { key, plaintext };
  };
  return { seal, open };
};

const metadataOf = (key: CloudKey, accountId: string, isConnected: boolean): Answer => {
  return {
    members: {
      KeyMetadata: {
        AWSAccountId: accountId,
        KeyId: key.id,
        Arn: key.arn,
        CreationDate: key.createdAt / 1000,
        Enabled: isConnected,
        Description: key.description,
        KeyUsage: 'ENCRYPT_DECRYPT',
        KeyState: isConnected ? 'Enabled' : 'Unavailable',
        Origin: 'EXTERNAL_KEY_STORE',
        CustomKeyStoreId: key.storeId,
        KeyManager: 'CUSTOMER',
        CustomerMasterKeySpec: algorithm,
        KeySpec: algorithm,
        EncryptionAlgorithms: [algorithm],
        MultiRegion: false,
        XksKeyConfiguration: { Id: key.xksKeyId },
      },
    },
  };
};

export const createKeys = ({ crypto, storeOf, arnPrefix, accountId, clock }: KeyOptions): Keys => {
  const keys = new Map<string, CloudKey>();
  const { seal, open } = createSealing({ crypto, storeOf, find: (id) => keys.get(id) });
  const described = (key: CloudKey): Answer => metadataOf(key, accountId, storeOf(key.storeId).state === 'CONNECTED');

  const find = (input: Input, name = 'KeyId'): CloudKey => {
    const given = text(input, name);
    const key = keys.get(given.startsWith(arnPrefix) ? given.slice(arnPrefix.length) : given);
    if (key === undefined) throw new KmsException('NotFoundException', 'no such KMS key');
    return key;
  };
  const requireAlgorithm = (input: Input, ...names: readonly string[]): void => {
    for (const name of names) oneOf(input, name, [algorithm]);
  };
  return {
    inStore: (storeId) => [...keys.values()].some((key) => key.storeId === storeId),

    create: async (by, input) => {
      if (oneOf(input, 'Origin', ['EXTERNAL_KEY_STORE']) === undefined)
        throw new KmsException(
          'UnsupportedOperationException',
          'this simulation creates only keys with the Origin EXTERNAL_KEY_STORE',
        );
      requireAlgorithm(input, 'KeySpec', 'CustomerMasterKeySpec');
      oneOf(input, 'KeyUsage', ['ENCRYPT_DECRYPT']);
      const store = storeOf(text(input, 'CustomKeyStoreId'));
      const xksKeyId = text(input, 'XksKeyId', /^[A-Za-z0-9._-]{1,128}$/);
      if (store.state !== 'CONNECTED')
        throw new KmsException('CustomKeyStoreInvalidStateException', `the custom key store is ${store.state}`);
      const requireUnused = (): void => {
        for (const key of keys.values())
          if (key.storeId === store.id && key.xksKeyId === xksKeyId)
            throw new KmsException(
              'XksKeyAlreadyInUseException',
              'another KMS key of this store already uses this external key',
            );
      };
      requireUnused();
      await asException('createKey', () => store.proxy.checkKey(by, xksKeyId));
      requireUnused();
      const id = randomUUID();
      const key: CloudKey = {
        id,
        arn: `${arnPrefix}${id}`,
        storeId: store.id,
        xksKeyId,
        description: optionalText(input, 'Description') ?? '',
        createdAt: clock(),
        own: crypto.generateAes(256),
      };
      keys.set(id, key);
      return described(key);
    },

    describe: (input) => described(find(input)),

    encrypt: async (by, input, plaintext) => {
      requireAlgorithm(input, 'EncryptionAlgorithm');
      if (plaintext === null || plaintext.length === 0 || plaintext.length > maxPlaintext)
        throw invalid(`Plaintext must be Base64 of 1 to ${maxPlaintext} bytes`);
      const key = find(input);
      const blob = await seal(by, key, plaintext, bindingOf(input));
      return { members: { CiphertextBlob: toBase64(blob), KeyId: key.arn, EncryptionAlgorithm: algorithm } };
    },

    decrypt: async (by, input) => {
      requireAlgorithm(input, 'EncryptionAlgorithm');
      const named = input.KeyId === undefined ? undefined : find(input);
      const { key, plaintext } = await open(by, bytes(input, 'CiphertextBlob', maxBlob), bindingOf(input), named);
      return { members: { KeyId: key.arn, EncryptionAlgorithm: algorithm }, plaintext };
    },

    generateDataKey: async (by, input, shown) => {
      const spec = oneOf(input, 'KeySpec', ['AES_128', 'AES_256']);
      const count = input.NumberOfBytes;
      if ((spec === undefined) === (count === undefined)) throw invalid('send either KeySpec or NumberOfBytes');
      const length = spec === 'AES_128' ? 16 : spec === 'AES_256' ? 32 : Number(count);
      if (!Number.isInteger(length) || length < 1 || length > 1024) throw invalid('NumberOfBytes must be 1 to 1024');
      const key = find(input);
      const plaintext = Buffer.alloc(length);
      crypto.random(plaintext);
      let kept = false;
      try {
        const blob = await seal(by, key, plaintext, bindingOf(input));
        const members = { CiphertextBlob: toBase64(blob), KeyId: key.arn };
        kept = shown;
        return shown ? { members, plaintext } : { members };
      } finally {
        if (!kept) crypto.wipe(plaintext);
      }
    },

    reEncrypt: async (by, input) => {
      requireAlgorithm(input, 'SourceEncryptionAlgorithm', 'DestinationEncryptionAlgorithm');
      const source = input.SourceKeyId === undefined ? undefined : find(input, 'SourceKeyId');
      const destination = find(input, 'DestinationKeyId');
      const sourceBinding = bindingOf(input, 'SourceEncryptionContext');
      const destinationBinding = bindingOf(input, 'DestinationEncryptionContext');
      const { key, plaintext } = await open(by, bytes(input, 'CiphertextBlob', maxBlob), sourceBinding, source);
      try {
        const blob = await seal(by, destination, plaintext, destinationBinding);
        return {
          members: {
            CiphertextBlob: toBase64(blob),
            SourceKeyId: key.arn,
            KeyId: destination.arn,
            SourceEncryptionAlgorithm: algorithm,
            DestinationEncryptionAlgorithm: algorithm,
          },
        };
      } finally {
        crypto.wipe(plaintext);
      }
    },
  };
};
