// Encryption, decryption, digests and random numbers, whole and in parts, against node:crypto:
// PKCS#11 2.40, sections 5.8 to 5.10 and 5.13 to 5.15.
import { constants, createCipheriv, createHash, privateDecrypt, publicEncrypt } from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { CKG } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { type Bench, mechanismOf, type Rule, rule, rvOf, template } from './bench.ts';
import { importedRsa, rsaPrivate, rsaPublic } from './rules-objects.ts';

const nowhere = Buffer.from('efbeadde00000000', 'hex');
const iv = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, index) => (index * 7) & 0xff));
const value = (length: number): Buffer => bytes(length + 3).subarray(3);
/** Cuts in pieces of 1, 7, 16 and 33 bytes, again and again. */
const pieces = (data: Buffer): Buffer[] => {
  const parts: Buffer[] = [];
  for (let at = 0, turn = 0; at < data.length; turn++) {
    const length = [1, 7, 16, 33][turn % 4] ?? 1;
    parts.push(data.subarray(at, at + length));
    at += length;
  }
  return parts;
};

interface Cipher {
  readonly mechanism: (iv: Buffer) => pkcs11js.Mechanism;
  readonly lengths: readonly number[];
  /** What node:crypto calls it. */
  readonly algorithm: (bits: number) => string;
  readonly aad?: Buffer;
}

let messages = 0;
/** An IV that was not used before: the rules create their keys from the same bytes. */
const freshIv = (): Buffer => {
  const fresh = Buffer.from(iv);
  fresh.writeUInt32BE(++messages);
  return fresh;
};
const gcm = (aad: Buffer, own: Buffer): pkcs11js.Mechanism =>
  mechanismOf<pkcs11js.AesGCM>(CKM.AES_GCM, {
    type: pkcs11js.CK_PARAMS_AES_GCM,
    iv: Buffer.from(own.subarray(0, 12)),
    aad,
    ivBits: 96,
    tagBits: 128,
  });
/** CK_AES_CTR_PARAMS: the number of counter bits, then the block. */
const counterBits = Buffer.from('8000000000000000', 'hex');
const ciphers: Readonly<Record<string, Cipher>> = {
  AES_ECB: {
    mechanism: () => ({ mechanism: CKM.AES_ECB }),
    lengths: [16, 64, 4096],
    algorithm: (bits) => `aes-${bits}-ecb`,
  },
  AES_CBC: {
    mechanism: (parameter) => ({ mechanism: CKM.AES_CBC, parameter }),
    lengths: [16, 64, 4096],
    algorithm: (bits) => `aes-${bits}-cbc`,
  },
  AES_CBC_PAD: {
    mechanism: (parameter) => ({ mechanism: CKM.AES_CBC_PAD, parameter }),
    lengths: [1, 15, 16, 100, 4096],
    algorithm: (bits) => `aes-${bits}-cbc`,
  },
  AES_CTR: {
    mechanism: (block) => ({ mechanism: CKM.AES_CTR, parameter: Buffer.concat([counterBits, block]) }),
    lengths: [1, 16, 100, 4096],
    algorithm: (bits) => `aes-${bits}-ctr`,
  },
  AES_GCM: {
    mechanism: (own) => gcm(Buffer.from('more'), own),
    lengths: [1, 16, 100],
    algorithm: (bits) => `aes-${bits}-gcm`,
    aad: Buffer.from('more'),
  },
};

const expectedOf = (name: string, { algorithm, aad }: Cipher, key: Buffer, data: Buffer, given: Buffer): Buffer => {
  const own = name === 'AES_ECB' ? null : name === 'AES_GCM' ? given.subarray(0, 12) : given;
  const cipher = createCipheriv(algorithm(key.length * 8), key, own);
  cipher.setAutoPadding(name === 'AES_CBC_PAD');
  if (name !== 'AES_GCM') return Buffer.concat([cipher.update(data), cipher.final()]);
  const authenticated = cipher as ReturnType<typeof createCipheriv> & {
    setAAD(aad: Buffer): void;
    getAuthTag(): Buffer;
  };
  if (aad !== undefined) authenticated.setAAD(aad);
  return Buffer.concat([cipher.update(data), cipher.final(), authenticated.getAuthTag()]);
};

const cbcCipher = ciphers.AES_CBC as Cipher;

const inParts = (data: Buffer, update: (part: Buffer) => Buffer, final: () => Buffer): Buffer =>
  Buffer.concat([...pieces(data).map((part) => Buffer.from(update(part))), final()]);

const roundTripRules: readonly Rule[] = Object.entries(ciphers).flatMap(([name, cipher]) =>
  [16, 24, 32].flatMap((keyLength) =>
    (['session', 'token'] as const).flatMap((where): Rule[] => {
      const key = (on: Bench): Buffer =>
        on.aes(
          value(keyLength),
          where === 'token' ? { TOKEN: true, LABEL: `${name} ${keyLength} ${Math.random()}` } : {},
        );
      const each = (
        on: Bench,
        look: (mechanism: pkcs11js.Mechanism, key: Buffer, data: Buffer, sealed: Buffer) => boolean,
      ): boolean => {
        const object = key(on);
        const held = cipher.lengths.every((length) => {
          const fresh = freshIv();
          const sealed = expectedOf(name, cipher, value(keyLength), bytes(length), fresh);
          return look(cipher.mechanism(fresh), object, bytes(length), sealed);
        });
        on.pkcs11.C_DestroyObject(on.session, object);
        return held;
      };
      const of = `a key of the ${where}, ${keyLength * 8} bits`;
      return [
        rule(`CKM_${name} whole, ${of}`, '5.8, 5.9', true, (on) =>
          each(on, (mechanism, object, data, sealed) => {
            const there = on.encrypt(mechanism, object, data).equals(sealed);
            return there && on.decrypt(mechanism, object, sealed).equals(data);
          }),
        ),
        rule(`CKM_${name} in parts, ${of}`, '5.8, 5.9', true, (on) =>
          each(on, (mechanism, object, data, sealed) => {
            const { pkcs11, session } = on;
            const room = (): Buffer => Buffer.alloc(data.length + 64);
            pkcs11.C_EncryptInit(session, mechanism, object);
            const there = inParts(
              data,
              (part) => pkcs11.C_EncryptUpdate(session, part, room()),
              () => pkcs11.C_EncryptFinal(session, room()),
            );
            pkcs11.C_DecryptInit(session, mechanism, object);
            const back = inParts(
              sealed,
              (part) => pkcs11.C_DecryptUpdate(session, part, room()),
              () => pkcs11.C_DecryptFinal(session, room()),
            );
            return there.equals(sealed) && back.equals(data);
          }),
        ),
      ];
    }),
  ),
);

const ecb = { mechanism: CKM.AES_ECB };
const cbc = { mechanism: CKM.AES_CBC, parameter: iv };
const pad = { mechanism: CKM.AES_CBC_PAD, parameter: iv };

/** An invalid use of a cipher, with its name. */
const wrongRules: readonly Rule[] = [
  ...(
    [
      ['without its IV', { mechanism: CKM.AES_CBC }],
      ['with an IV of 15 bytes', { mechanism: CKM.AES_CBC, parameter: iv.subarray(1) }],
    ] as const
  ).map(
    ([what, mechanism]): Rule =>
      rule(`C_EncryptInit of CKM_AES_CBC ${what}`, 'mechanisms 2.8', 'CKR_MECHANISM_PARAM_INVALID', (on) =>
        rvOf(() => on.pkcs11.C_EncryptInit(on.session, mechanism, on.aes(value(16)))),
      ),
  ),
  ...(['C_EncryptInit', 'C_DecryptInit', 'C_SignInit', 'C_VerifyInit'] as const).flatMap((name): Rule[] => [
    rule(`${name} of a mechanism that does not exist`, '5.8 to 5.12', 'CKR_MECHANISM_INVALID', (on) =>
      rvOf(() => on.pkcs11[name](on.session, { mechanism: 0x7fff_ffff }, on.aes(value(16)))),
    ),
    rule(`${name} of a digest`, '5.8 to 5.12', 'CKR_MECHANISM_INVALID', (on) =>
      rvOf(() => on.pkcs11[name](on.session, { mechanism: CKM.SHA256 }, on.aes(value(16)))),
    ),
    rule(`${name} with no key`, '5.8 to 5.12', 'CKR_KEY_HANDLE_INVALID', ({ pkcs11, session }) =>
      rvOf(() =>
        pkcs11[name](
          session,
          { mechanism: name.startsWith('C_S') || name.startsWith('C_V') ? CKM.AES_CMAC : CKM.AES_ECB },
          nowhere,
        ),
      ),
    ),
    rule(`${name} with a key that does not allow it`, '5.8 to 5.12', 'CKR_KEY_FUNCTION_NOT_PERMITTED', (on) => {
      const key = on.aes(value(16), { ENCRYPT: false, DECRYPT: false, SIGN: false, VERIFY: false });
      const mechanism = { mechanism: name.startsWith('C_S') || name.startsWith('C_V') ? CKM.AES_CMAC : CKM.AES_ECB };
      return rvOf(() => on.pkcs11[name](on.session, mechanism, key));
    }),
    rule(`${name} with a key of another type`, '5.8 to 5.12', 'CKR_KEY_TYPE_INCONSISTENT', (on) => {
      const key = on.generic(value(16), { ENCRYPT: true, DECRYPT: true });
      const mechanism = { mechanism: name.startsWith('C_S') || name.startsWith('C_V') ? CKM.AES_CMAC : CKM.AES_ECB };
      return rvOf(() => on.pkcs11[name](on.session, mechanism, key));
    }),
    rule(`${name} twice`, '5.8 to 5.12', ['CKR_OK', 'CKR_OPERATION_ACTIVE'], (on) => {
      const key = on.aes(value(16));
      const mechanism = { mechanism: name.startsWith('C_S') || name.startsWith('C_V') ? CKM.AES_CMAC : CKM.AES_ECB };
      return [0, 1].map(() => rvOf(() => on.pkcs11[name](on.session, mechanism, key)));
    }),
  ]),
  rule(
    'C_Encrypt, C_EncryptUpdate and C_EncryptFinal without C_EncryptInit',
    '5.8',
    ['CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED'],
    ({ pkcs11, session }) => [
      rvOf(() => pkcs11.C_Encrypt(session, bytes(16), Buffer.alloc(16))),
      rvOf(() => pkcs11.C_EncryptUpdate(session, bytes(16), Buffer.alloc(16))),
      rvOf(() => pkcs11.C_EncryptFinal(session, Buffer.alloc(16))),
    ],
  ),
  rule(
    'C_Decrypt, C_DecryptUpdate and C_DecryptFinal without C_DecryptInit',
    '5.9',
    ['CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED'],
    ({ pkcs11, session }) => [
      rvOf(() => pkcs11.C_Decrypt(session, bytes(16), Buffer.alloc(16))),
      rvOf(() => pkcs11.C_DecryptUpdate(session, bytes(16), Buffer.alloc(16))),
      rvOf(() => pkcs11.C_DecryptFinal(session, Buffer.alloc(16))),
    ],
  ),
  ...(
    [
      ['CKM_AES_ECB', ecb],
      ['CKM_AES_CBC', cbc],
    ] as const
  ).flatMap(([name, mechanism]): Rule[] => [
    rule(
      `C_Encrypt of ${name} with half a block, and what is left of the operation`,
      '5.8',
      ['CKR_DATA_LEN_RANGE', 'CKR_OPERATION_NOT_INITIALIZED'],
      (on) => {
        on.pkcs11.C_EncryptInit(on.session, mechanism, on.aes(value(16)));
        return [24, 16].map((length) => rvOf(() => on.pkcs11.C_Encrypt(on.session, bytes(length), Buffer.alloc(64))));
      },
    ),
    rule(
      `C_Decrypt of ${name} with half a block, and what is left of the operation`,
      '5.9',
      ['CKR_ENCRYPTED_DATA_LEN_RANGE', 'CKR_OPERATION_NOT_INITIALIZED'],
      (on) => {
        on.pkcs11.C_DecryptInit(on.session, mechanism, on.aes(value(16)));
        return [24, 16].map((length) => rvOf(() => on.pkcs11.C_Decrypt(on.session, bytes(length), Buffer.alloc(64))));
      },
    ),
    rule(`C_EncryptFinal of ${name} after half a block`, '5.8', 'CKR_DATA_LEN_RANGE', (on) => {
      on.pkcs11.C_EncryptInit(on.session, mechanism, on.aes(value(16)));
      on.pkcs11.C_EncryptUpdate(on.session, bytes(24), Buffer.alloc(64));
      return rvOf(() => on.pkcs11.C_EncryptFinal(on.session, Buffer.alloc(64)));
    }),
  ]),
  rule('C_Decrypt of CKM_AES_CBC_PAD with a padding that is none', '5.9', 'CKR_ENCRYPTED_DATA_INVALID', (on) => {
    const key = on.aes(value(16));
    const sealed = on.encrypt(cbc, key, Buffer.alloc(16));
    return rvOf(() => on.decrypt(pad, key, sealed));
  }),
  rule('C_Decrypt of CKM_AES_CBC_PAD with nothing', '5.9', 'CKR_ENCRYPTED_DATA_LEN_RANGE', (on) =>
    rvOf(() => on.decrypt(pad, on.aes(value(16)), Buffer.alloc(0))),
  ),
  rule('C_Decrypt of CKM_AES_GCM with a bit changed', 'mechanisms 2.10', 'CKR_ENCRYPTED_DATA_INVALID', (on) => {
    const key = on.aes(value(16));
    const own = freshIv();
    const sealed = Buffer.from(on.encrypt(gcm(Buffer.from('aad'), own), key, bytes(20)));
    sealed[3] = (sealed[3] ?? 0) ^ 1;
    return rvOf(() => on.decrypt(gcm(Buffer.from('aad'), own), key, sealed));
  }),
  rule('C_Decrypt of CKM_AES_GCM with other additional data', 'mechanisms 2.10', 'CKR_ENCRYPTED_DATA_INVALID', (on) => {
    const key = on.aes(value(24));
    const own = freshIv();
    const sealed = on.encrypt(gcm(Buffer.from('aad'), own), key, bytes(20));
    return rvOf(() => on.decrypt(gcm(Buffer.from('other'), own), key, sealed));
  }),
  rule('CKM_AES_GCM twice under one key and one IV', 'mechanisms 2.10', ['CKR_OK', 'CKR_OK'], (on) => {
    const key = on.aes(value(32));
    const own = freshIv();
    return [0, 1].map(() => rvOf(() => on.encrypt(gcm(Buffer.from('aad'), own), key, bytes(20))));
  }),
  rule(
    'a buffer that is too small keeps the operation: C_Encrypt',
    '5.2',
    ['CKR_BUFFER_TOO_SMALL', 'CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_OPERATION_NOT_INITIALIZED'],
    (on) => {
      on.pkcs11.C_EncryptInit(on.session, ecb, on.aes(value(16)));
      return [31, 1, 32, 32].map((room) => rvOf(() => on.pkcs11.C_Encrypt(on.session, bytes(32), Buffer.alloc(room))));
    },
  ),
  rule(
    'a buffer that is too small keeps the operation: C_Decrypt',
    '5.2',
    ['CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_OPERATION_NOT_INITIALIZED'],
    (on) => {
      on.pkcs11.C_DecryptInit(on.session, ecb, on.aes(value(16)));
      return [31, 32, 32].map((room) => rvOf(() => on.pkcs11.C_Decrypt(on.session, bytes(32), Buffer.alloc(room))));
    },
  ),
  rule(
    'a buffer that is too small keeps the operation: C_EncryptUpdate and C_EncryptFinal',
    '5.2',
    ['CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_OPERATION_NOT_INITIALIZED'],
    (on) => {
      const { pkcs11, session } = on;
      pkcs11.C_EncryptInit(session, pad, on.aes(value(16)));
      return [
        ...[15, 48].map((room) => rvOf(() => pkcs11.C_EncryptUpdate(session, bytes(40), Buffer.alloc(room)))),
        ...[15, 16, 16].map((room) => rvOf(() => pkcs11.C_EncryptFinal(session, Buffer.alloc(room)))),
      ];
    },
  ),
  rule('a padded text is decrypted into room for the text alone', '5.2', 'CKR_OK', (on) => {
    const key = on.aes(value(16));
    const sealed = on.encrypt(pad, key, bytes(5));
    on.pkcs11.C_DecryptInit(on.session, pad, key);
    return rvOf(() => on.pkcs11.C_Decrypt(on.session, sealed, Buffer.alloc(5)));
  }),
  rule('C_Encrypt after C_EncryptUpdate', '5.8', 'CKR_OPERATION_ACTIVE', (on) => {
    on.pkcs11.C_EncryptInit(on.session, ecb, on.aes(value(16)));
    on.pkcs11.C_EncryptUpdate(on.session, bytes(16), Buffer.alloc(16));
    return rvOf(() => on.pkcs11.C_Encrypt(on.session, bytes(16), Buffer.alloc(16)));
  }),
  rule('one session encrypts and digests at once', '5.1', ['CKR_OK', 'CKR_OK', 'CKR_OK', 'CKR_OK'], (on) => {
    const { pkcs11, session } = on;
    return [
      rvOf(() => pkcs11.C_EncryptInit(session, ecb, on.aes(value(16)))),
      rvOf(() => pkcs11.C_DigestInit(session, { mechanism: CKM.SHA256 })),
      rvOf(() => pkcs11.C_Encrypt(session, bytes(16), Buffer.alloc(16))),
      rvOf(() => pkcs11.C_Digest(session, bytes(16), Buffer.alloc(32))),
    ];
  }),
  ...(['session', 'token'] as const).flatMap((where): Rule[] => [
    rule(
      `the dual functions with a key of the ${where}`,
      '5.13',
      {
        sealed: expectedOf('AES_CBC', cbcCipher, value(16), bytes(48), iv).toString('hex'),
        opened: bytes(48).toString('hex'),
        digests: [0, 1].map(() => createHash('sha256').update(bytes(48)).digest('hex')),
      },
      ({ pkcs11, session, aes }) => {
        const key = aes(value(16), where === 'token' ? { TOKEN: true, LABEL: `dual ${Math.random()}` } : {});
        const [first, second] = [bytes(48).subarray(0, 20), bytes(48).subarray(20)];
        pkcs11.C_EncryptInit(session, cbc, key);
        pkcs11.C_DigestInit(session, { mechanism: CKM.SHA256 });
        const sealed = Buffer.concat([
          ...[first, second].map((part) => pkcs11.C_DigestEncryptUpdate(session, part, Buffer.alloc(48))),
          pkcs11.C_EncryptFinal(session, Buffer.alloc(16)),
        ]);
        const digest = pkcs11.C_DigestFinal(session, Buffer.alloc(32)).toString('hex');
        pkcs11.C_DecryptInit(session, cbc, key);
        pkcs11.C_DigestInit(session, { mechanism: CKM.SHA256 });
        const opened = Buffer.concat([
          ...[sealed.subarray(0, 20), sealed.subarray(20)].map((part) =>
            pkcs11.C_DecryptDigestUpdate(session, part, Buffer.alloc(48)),
          ),
          pkcs11.C_DecryptFinal(session, Buffer.alloc(16)),
        ]);
        const digests = [digest, pkcs11.C_DigestFinal(session, Buffer.alloc(32)).toString('hex')];
        return { sealed: sealed.toString('hex'), opened: opened.toString('hex'), digests };
      },
    ),
    ...(
      [
        ['AES_ECB', [0, 16, 16, 32, 16, 0]],
        ['AES_CBC', [0, 16, 16, 32, 16, 0]],
        ['AES_CBC_PAD', [0, 16, 16, 32, 16, 16]],
        ['AES_CTR', [5, 16, 11, 32, 16, 0]],
      ] as const
    ).map(
      ([name, expected]): Rule =>
        rule(
          `CKM_${name} with a key of the ${where} gives out every block that is full with the part that fills it`,
          '5.8',
          expected,
          ({ pkcs11, session, aes }) => {
            const mechanism = ciphers[name]?.mechanism(iv) ?? ecb;
            const key = aes(
              value(32),
              where === 'token' ? { TOKEN: true, LABEL: `blocks ${name} ${Math.random()}` } : {},
            );
            pkcs11.C_EncryptInit(session, mechanism, key);
            const lengths = [5, 16, 11, 32, 16].map(
              (length) => pkcs11.C_EncryptUpdate(session, bytes(length), Buffer.alloc(length + 16)).length,
            );
            return [...lengths, pkcs11.C_EncryptFinal(session, Buffer.alloc(32)).length];
          },
        ),
    ),
  ]),
];

const oaep = (hashAlg: number, mgf: number): pkcs11js.Mechanism =>
  mechanismOf<pkcs11js.RsaOAEP>(CKM.RSA_PKCS_OAEP, {
    type: pkcs11js.CK_PARAMS_RSA_OAEP,
    hashAlg,
    mgf,
    source: 1,
    sourceData: Buffer.alloc(0),
  });
const oaepRules: readonly Rule[] = (
  [
    ['sha1', CKM.SHA_1, CKG.MGF1_SHA1],
    ['sha256', CKM.SHA256, CKG.MGF1_SHA256],
  ] as const
).flatMap(([oaepHash, hashAlg, mgf]): Rule[] => [
  rule(
    `CKM_RSA_PKCS_OAEP with ${oaepHash}: what the token encrypts others decrypt`,
    'mechanisms 2.1',
    bytes(40).toString('hex'),
    (on) => {
      const sealed = on.encrypt(oaep(hashAlg, mgf), on.create({ ...rsaPublic, ENCRYPT: true }), bytes(40));
      return privateDecrypt({ key: importedRsa, oaepHash, padding: constants.RSA_PKCS1_OAEP_PADDING }, sealed).toString(
        'hex',
      );
    },
  ),
  rule(
    `CKM_RSA_PKCS_OAEP with ${oaepHash}: what others encrypt the token decrypts`,
    'mechanisms 2.1',
    bytes(40).toString('hex'),
    (on) => {
      const sealed = publicEncrypt(
        { key: importedRsa, oaepHash, padding: constants.RSA_PKCS1_OAEP_PADDING },
        bytes(40),
      );
      return on.decrypt(oaep(hashAlg, mgf), on.create({ ...rsaPrivate, DECRYPT: true }), sealed).toString('hex');
    },
  ),
]);
const rsaWrong: readonly Rule[] = [
  rule('CKM_RSA_PKCS_OAEP without its parameter', 'mechanisms 2.1', 'CKR_MECHANISM_PARAM_INVALID', (on) =>
    rvOf(() => on.pkcs11.C_EncryptInit(on.session, { mechanism: CKM.RSA_PKCS_OAEP }, on.create(rsaPublic))),
  ),
  rule('CKM_RSA_PKCS decrypts', 'mechanisms 2.1', 'CKR_OK', (on) =>
    rvOf(() => {
      const sealed = publicEncrypt({ key: importedRsa, padding: constants.RSA_PKCS1_PADDING }, bytes(40));
      on.decrypt({ mechanism: CKM.RSA_PKCS }, on.create({ ...rsaPrivate, DECRYPT: true }), sealed);
    }),
  ),
];

const digests = { SHA_1: 'sha1', SHA224: 'sha224', SHA256: 'sha256', SHA384: 'sha384', SHA512: 'sha512' } as const;
const digestRules: readonly Rule[] = [
  ...(Object.entries(digests) as [keyof typeof digests, string][]).flatMap(([name, algorithm]) =>
    Object.entries({ 'no bytes': 0, 'one byte': 1, 'many bytes': 1000 }).map(([what, length]): Rule => {
      const digest = createHash(algorithm).update(bytes(length)).digest('hex');
      return rule(`CKM_${name} of ${what}, whole and in parts`, '5.10', [digest, digest], ({ pkcs11, session }) => {
        pkcs11.C_DigestInit(session, { mechanism: CKM[name] });
        const whole = pkcs11.C_Digest(session, bytes(length), Buffer.alloc(64)).toString('hex');
        pkcs11.C_DigestInit(session, { mechanism: CKM[name] });
        for (const part of pieces(bytes(length))) pkcs11.C_DigestUpdate(session, part);
        return [whole, pkcs11.C_DigestFinal(session, Buffer.alloc(64)).toString('hex')];
      });
    }),
  ),
  rule(
    'a buffer that is too small keeps the operation: C_Digest',
    '5.2',
    ['CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_OPERATION_NOT_INITIALIZED'],
    ({ pkcs11, session }) => {
      pkcs11.C_DigestInit(session, { mechanism: CKM.SHA256 });
      return [31, 32, 32].map((room) => rvOf(() => pkcs11.C_Digest(session, bytes(3), Buffer.alloc(room))));
    },
  ),
  rule('C_DigestInit of a cipher', '5.10', 'CKR_MECHANISM_INVALID', ({ pkcs11, session }) =>
    rvOf(() => pkcs11.C_DigestInit(session, ecb)),
  ),
  rule(
    'C_DigestUpdate and C_DigestFinal without C_DigestInit',
    '5.10',
    ['CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED'],
    ({ pkcs11, session }) => [
      rvOf(() => pkcs11.C_DigestUpdate(session, bytes(1))),
      rvOf(() => pkcs11.C_DigestFinal(session, Buffer.alloc(64))),
    ],
  ),
  rule('C_DigestKey of a key that may be read', '5.10', 'CKR_OK', (on) => {
    on.pkcs11.C_DigestInit(on.session, { mechanism: CKM.SHA256 });
    return rvOf(() => on.pkcs11.C_DigestKey(on.session, on.generic(value(16))));
  }),
  rule('C_DigestKey of a sensitive key', '5.10', 'CKR_KEY_INDIGESTIBLE', (on) => {
    on.pkcs11.C_DigestInit(on.session, { mechanism: CKM.SHA256 });
    const key = on.generic(value(16), { SENSITIVE: true, EXTRACTABLE: false });
    return rvOf(() => on.pkcs11.C_DigestKey(on.session, key));
  }),
];

const randomRules: readonly Rule[] = [
  rule('C_GenerateRandom fills what it was given, each time anew', '5.15', [true, true], ({ pkcs11, session }) => {
    const [one, other] = [Buffer.alloc(4096), Buffer.alloc(4096)];
    pkcs11.C_GenerateRandom(session, one);
    pkcs11.C_GenerateRandom(session, other);
    return [!one.subarray(4064).equals(Buffer.alloc(32)), !one.equals(other)];
  }),
  rule('C_SeedRandom takes a seed', '5.15', 'CKR_OK', ({ pkcs11, session }) =>
    rvOf(() => pkcs11.C_SeedRandom(session, bytes(20))),
  ),
];

export const cipherRules: readonly Rule[] = [
  ...roundTripRules,
  ...wrongRules,
  ...oaepRules,
  ...rsaWrong,
  ...digestRules,
  ...randomRules,
  rule('what C_EncryptInit began is gone with its session', '5.6', 'CKR_OPERATION_NOT_INITIALIZED', (on) => {
    const session = on.open();
    on.pkcs11.C_EncryptInit(session, ecb, on.aes(value(16)));
    on.pkcs11.C_CloseSession(session);
    const next = on.open();
    const rv = rvOf(() => on.pkcs11.C_Encrypt(next, bytes(16), Buffer.alloc(16)));
    on.pkcs11.C_CloseSession(next);
    return rv;
  }),
  rule('CKA_ALLOWED_MECHANISMS holds', '4.7', ['CKR_OK', 'CKR_MECHANISM_INVALID'], (on) => {
    const only = Buffer.alloc(8);
    only.writeBigUInt64LE(BigInt(CKM.AES_CBC));
    const key = on.aes(value(16), { ALLOWED_MECHANISMS: only });
    return [cbc, ecb].map((mechanism) => rvOf(() => on.encrypt(mechanism, key, bytes(16))));
  }),
  rule('a key that is destroyed meanwhile: C_Encrypt', '5.8', 'CKR_OBJECT_HANDLE_INVALID', (on) => {
    const key = on.aes(value(16));
    on.pkcs11.C_DestroyObject(on.session, key);
    return on.read(key, 'LABEL');
  }),
  rule(
    'a use that is taken away meanwhile is refused at the next C_EncryptInit',
    '5.8',
    ['CKR_OK', 'CKR_KEY_FUNCTION_NOT_PERMITTED'],
    (on) => {
      const key = on.aes(value(16));
      const before = rvOf(() => on.encrypt(ecb, key, bytes(16)));
      on.pkcs11.C_SetAttributeValue(on.session, key, template({ ENCRYPT: false }));
      return [before, rvOf(() => on.encrypt(ecb, key, bytes(16)))];
    },
  ),
];
