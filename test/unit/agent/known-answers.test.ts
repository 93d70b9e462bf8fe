// Every mechanism of the table returns the published results, with session keys and token keys:
// constants from FIPS 180-4 and FIPS 202 (digests), RFC 2202, RFC 4231 and NIST's examples for
// SHA-3 (HMAC), SP 800-38A to 38D (AES), RFC 3394 and RFC 5649 (key wrap), RFC 5869 (HKDF), RFC
// 5903 (ECDH), RFC 6979 (ECDSA), RFC 8032 (Ed25519). Where nothing short is published (RSA, and the
// signatures with SHA-3) Node's own cryptography is the other side.
import {
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  constants as nodeConstants,
  sign as nodeSign,
  verify as nodeVerify,
  privateDecrypt,
  publicEncrypt,
  type SignKeyObjectInput,
} from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { MechanismRow } from '../../../provider/agent/operations/mechanism-row.ts';
import { mechanismRows } from '../../../provider/agent/operations/mechanisms.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKD, CKF, CKK, CKO, HKDF_SALT } from '../../../provider/schema/constants.ts';
import { CKM, mechanismName } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism, MechanismParameter } from '../../../provider/schema/types.ts';
import type { DigestName } from '../../../server/base/digests.ts';
import { given, room } from '../../support/in-process-agent.ts';
import { curve, digestMechanisms, type Row } from '../../support/mechanism-samples.ts';
import { clear, mech, startSession } from '../../support/session-calls.ts';
import { published } from '../../support/sp800-108.ts';
import { places } from '../../support/template.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
const counting = (from: number, length: number): Buffer => Buffer.from(Array.from({ length }, (_, at) => from + at));
const iv = counting(0, 16);
const nothing = new Uint8Array(0);

/** What has had its answer: compared with the table at the end. */
const answered = new Set<number>();

// --- digests and MACs ----------------------------------------------------------------------------

/** Digests of the text "abc", hexadecimal. */
const digests: Readonly<Record<DigestName, string>> = {
  sha1: 'a9993e364706816aba3e25717850c26c9cd0d89d',
  sha224: '23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7',
  sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  sha384: 'cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7',
  sha512:
    'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
  'sha512-224': '4634270f707b6a54daae7530460842e20e37ed265ceee9a43e8924aa',
  'sha512-256': '53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23',
  'sha3-224': 'e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf',
  'sha3-256': '3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532',
  'sha3-384': 'ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25',
  'sha3-512':
    'b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0',
};

const jefe = { key: Buffer.from('Jefe'), data: Buffer.from('what do ya want for nothing?') };
const keyed = (bytes: number) => ({ key: counting(0, bytes), data: Buffer.from('Sample message for keylen<blocklen') });
/** Null: nothing is published that could be written here, and Node computes it. */
const macs: Readonly<Record<DigestName, { readonly key: Buffer; readonly data: Buffer; readonly mac: string | null }>> =
  {
    sha1: { ...jefe, mac: 'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79' },
    sha224: { ...jefe, mac: 'a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44' },
    sha256: { ...jefe, mac: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843' },
    sha384: {
      ...jefe,
      mac: 'af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649',
    },
    sha512: {
      ...jefe,
      mac: '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
    },
    'sha512-224': { ...jefe, mac: null },
    'sha512-256': { ...jefe, mac: null },
    'sha3-224': { ...keyed(28), mac: '332cfd59347fdb8e576e77260be4aba2d6dc53117b3bfb52c6d18c04' },
    'sha3-256': { ...keyed(32), mac: '4fe8e202c4f058e8dddc23d8c34e467343e23555e24fc2f025d598f558f67205' },
    'sha3-384': {
      ...keyed(48),
      mac: 'd588a3c51f3f2d906e8298c1199aa8ff6296218127f6b38a90b6afe2c5617725bc99987f79b22a557b6520db710b7f42',
    },
    'sha3-512': {
      ...keyed(64),
      mac: '4efd629d6c71bf86162658f29943b1c308ce27cdfa6db0d9c3ce81763f9cbce5f7ebe9868031db1a8f8eb7b6b95e5c5e3f657a8996c86a2f6527e307f0213196',
    },
  };

// --- AES -----------------------------------------------------------------------------------------

const aes128 = hex('2b7e151628aed2a6abf7158809cf4f3c');
const blocks = hex('6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51');
const galoisPlain = hex(
  'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39',
);
interface CipherAnswer {
  readonly key: Buffer;
  readonly mechanism: Mechanism;
  readonly plain: Buffer;
  readonly sealed: Buffer;
}
const ciphers: readonly CipherAnswer[] = [
  {
    key: aes128,
    mechanism: mech(CKM.AES_ECB),
    plain: blocks,
    sealed: hex('3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf'),
  },
  {
    key: aes128,
    mechanism: mech(CKM.AES_CBC, { kind: 'bytes', bytes: iv }),
    plain: blocks,
    sealed: hex('7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2'),
  },
  {
    // RFC 3602, case 1, and the block of padding behind it.
    key: hex('06a9214036b8a15b512e03d534120006'),
    mechanism: mech(CKM.AES_CBC_PAD, { kind: 'bytes', bytes: hex('3dafba429d9eb430b422da802c9fac41') }),
    plain: Buffer.from('Single block msg'),
    sealed: hex('e353779c1079aeb82708942dbe77181ab97c825e1c785146542d396941bce55d'),
  },
  {
    key: aes128,
    mechanism: mech(CKM.AES_CTR, { kind: 'ctr', counterBits: 128, block: counting(0xf0, 16) }),
    plain: blocks,
    sealed: hex('874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff'),
  },
  {
    key: hex('feffe9928665731c6d6a8f9467308308'),
    mechanism: mech(CKM.AES_GCM, {
      kind: 'gcm',
      iv: hex('cafebabefacedbaddecaf888'),
      ivBits: 96,
      aad: hex('feedfacedeadbeeffeedfacedeadbeefabaddad2'),
      tagBits: 128,
    }),
    plain: galoisPlain,
    sealed: hex(
      '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47',
    ),
  },
  {
    key: counting(0x40, 16),
    mechanism: mech(CKM.AES_CCM, {
      kind: 'ccm',
      dataLength: 24,
      nonce: counting(0x10, 12),
      aad: counting(0, 20),
      macLength: 8,
    }),
    plain: counting(0x20, 24),
    sealed: hex('e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5484392fbc1b09951'),
  },
];

interface WrapAnswer {
  readonly key: Buffer;
  readonly mechanism: Mechanism;
  readonly value: Buffer;
  readonly wrapped: Buffer;
}
const kwp = {
  key: hex('5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8'),
  value: hex('c37b7e6492584340bed12207808941155068f738'),
  wrapped: hex('138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a'),
};
const wraps: readonly WrapAnswer[] = [
  {
    key: counting(0, 16),
    mechanism: mech(CKM.AES_KEY_WRAP),
    value: hex('00112233445566778899aabbccddeeff'),
    wrapped: hex('1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5'),
  },
  { ...kwp, mechanism: mech(CKM.AES_KEY_WRAP_PAD) },
  { ...kwp, mechanism: mech(CKM.AES_KEY_WRAP_KWP) },
  ...ciphers
    .filter(({ mechanism: { type } }) => type === CKM.AES_CBC || type === CKM.AES_CBC_PAD)
    .map(({ key, mechanism, plain, sealed }) => ({ key, mechanism, value: plain, wrapped: sealed })),
];

// --- derivation ----------------------------------------------------------------------------------

const hkdf = (hash: number, salt: Buffer, info: Buffer): MechanismParameter => ({
  kind: 'hkdf',
  extract: true,
  expand: true,
  hash,
  saltType: salt.length === 0 ? HKDF_SALT.NULL : HKDF_SALT.DATA,
  salt,
  saltKey: 0,
  info,
});
interface HkdfAnswer {
  readonly name: string;
  readonly base: Buffer;
  readonly parameter: MechanismParameter;
  readonly derived: string;
}
const hkdfs: readonly HkdfAnswer[] = [
  {
    name: 'A.1',
    base: Buffer.alloc(22, 0x0b),
    parameter: hkdf(CKM.SHA256, counting(0, 13), counting(0xf0, 10)),
    derived: '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
  },
  {
    name: 'A.3',
    base: Buffer.alloc(22, 0x0b),
    parameter: hkdf(CKM.SHA256, Buffer.alloc(0), Buffer.alloc(0)),
    derived: '8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8',
  },
  {
    name: 'A.4',
    base: Buffer.alloc(11, 0x0b),
    parameter: hkdf(CKM.SHA_1, counting(0, 13), counting(0xf0, 10)),
    derived: '085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896',
  },
];
const agreement = {
  own: hex('c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433'),
  peer: hex(
    '04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf6356fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab',
  ),
  shared: 'd6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de',
};

// --- signatures ----------------------------------------------------------------------------------

/** RFC 6979, A.2.5: over "sample". */
const ecdsaPoint = hex(
  '0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb67903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299',
);
const ecdsas: readonly (readonly [number, string])[] = [
  [
    CKM.ECDSA_SHA1,
    '61340c88c3aaebeb4f6d667f672ca9759a6ccaa9fa8811313039ee4a35471d326d7f147dac089441bb2e2fe8f7a3fa264b9c475098fdcf6e00d7c996e1b8b7eb',
  ],
  [
    CKM.ECDSA_SHA224,
    '53b2fff5d1752b2c689df257c04c40a587fababb3f6fc2702f1343af7ca9aa3fb9afb64fdc03dc1a131c7d2386d11e349f070aa432a4acc918bea988bf75c74c',
  ],
  [
    CKM.ECDSA_SHA256,
    'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8',
  ],
  [
    CKM.ECDSA_SHA384,
    '0eafea039b20e9b42309fb1d89e213057cbf973dc0cfc8f129edddc800ef77194861f0491e6998b9455193e34e7b0d284ddd7149a74b95b9261f13abde940954',
  ],
  [
    CKM.ECDSA_SHA512,
    '8496a60b5e9b47c825488827e0495b0e3fa109ec4568fd3f8d1097678eb97f002362ab1adbe2b8adf9cb9edab740ea6049c028114f2460f96554f61fae3302fe',
  ],
];
/** RFC 8032, 7.1, test 2. */
const edwards = {
  secret: hex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb'),
  data: hex('72'),
  signature:
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
};

/** Calls whose keys are where the test wants them. */
const openHost = async (token: boolean) => {
  const call = await startSession();
  const place: Row = [CKA.TOKEN, token];
  const create = (...rows: Row[]) => call.create(...rows, place);
  return {
    ...call,
    create,
    secret: (keyType: number, value: Uint8Array, ...rows: Row[]) =>
      create(
        [CKA.CLASS, CKO.SECRET_KEY],
        [CKA.KEY_TYPE, keyType],
        [CKA.VALUE, value],
        ...clear,
        [CKA.DERIVE, true],
        ...rows,
      ),
    value: async (object: number) => (await call.value(object)).toString('hex'),
    derive: (mechanism: Mechanism, baseKey: number, ...rows: Row[]) => call.derive(mechanism, baseKey, ...rows, place),
    async pair(type: number, ...rows: Row[]) {
      const pair = await call.pair(type, [...rows, place], [place]);
      return { ...pair, node: await call.node(pair.publicKey) };
    },
    /** A public key from Node. */
    publicKey(node: KeyObject): Promise<number> {
      const { kty, n, e, x, y } = node.export({ format: 'jwk' });
      const bytes = (text: unknown): Buffer => Buffer.from(String(text), 'base64url');
      const rows: Row[] =
        kty === 'RSA'
          ? [
              [CKA.KEY_TYPE, CKK.RSA],
              [CKA.MODULUS, bytes(n)],
              [CKA.PUBLIC_EXPONENT, bytes(e)],
            ]
          : [
              [CKA.KEY_TYPE, CKK.EC],
              [CKA.EC_PARAMS, curve('p256')],
              [CKA.EC_POINT, Buffer.concat([Buffer.of(4, 65, 4), bytes(x), bytes(y)])],
            ];
      return create([CKA.CLASS, CKO.PUBLIC_KEY], ...rows);
    },
  };
};
type Host = Awaited<ReturnType<typeof openHost>>;

const secretRows: Row[] = [[CKA.CLASS, CKO.SECRET_KEY], [CKA.KEY_TYPE, CKK.GENERIC_SECRET], ...clear];
const namesOf = <T extends { readonly mechanism: Mechanism }>(rows: readonly T[]) =>
  rows.map((row) => [mechanismName(row.mechanism.type), row] as const);

test.each(Object.entries(digests))('%s of "abc"', async (name, expected) => {
  const { hash } = digestMechanisms[name as DigestName];
  const { agent, session } = await startSession();
  await agent.call('C_DigestInit', { session, mechanism: mech(hash) });
  const out = room(64);
  const digest = given(out, await agent.call('C_Digest', { session, data: Buffer.from('abc'), digest: out }));
  expect((digest as Buffer).toString('hex')).toBe(expected);
  answered.add(hash);
});

describe.each(places)('with keys of the %s', (_where, token) => {
  let host: Host;
  beforeAll(async () => {
    host = await openHost(token);
  });

  const hmacs = mechanismRows.flatMap((row) =>
    row.mac?.parameters.algorithm === 'hmac'
      ? [[mechanismName(row.type), row, row.mac.parameters.digest, row.mac.general] as const]
      : [],
  );
  test.each(hmacs)('%s', async (_name, { type, keyTypes }, digest, general) => {
    const { key: value, data, mac } = macs[digest];
    const whole = mac === null ? createHmac(digest, value).update(data).digest() : hex(mac);
    const expected = general ? whole.subarray(0, 10) : whole;
    const mechanism = mech(type, general ? { kind: 'ulong', value: 10 } : null);
    for (const keyType of keyTypes) {
      const key = await host.secret(keyType, value);
      expect(await host.sign(mechanism, key, data)).toEqual(expected);
      expect(await host.verify(mechanism, key, data, expected)).toBe('CKR_OK');
      expect(await host.verify(mechanism, key, Buffer.concat([data, data]), expected)).toBe('CKR_SIGNATURE_INVALID');
    }
    answered.add(type);
  });

  test.each([
    ['CKM_AES_CMAC', mech(CKM.AES_CMAC), 16],
    ['CKM_AES_CMAC_GENERAL', mech(CKM.AES_CMAC_GENERAL, { kind: 'ulong', value: 8 }), 8],
  ])('%s', async (_name, mechanism, length) => {
    const key = await host.secret(CKK.AES, aes128);
    const mac = hex('070a16b46b4d4144f79bdd9dd04a287c').subarray(0, length);
    expect(await host.sign(mechanism, key, blocks.subarray(0, 16))).toEqual(mac);
    expect(await host.verify(mechanism, key, blocks.subarray(0, 16), mac)).toBe('CKR_OK');
    expect(await host.verify(mechanism, key, blocks, mac)).toBe('CKR_SIGNATURE_INVALID');
    answered.add(mechanism.type);
  });

  test.each(namesOf(ciphers))('%s encrypts and decrypts', async (_name, { key: value, mechanism, plain, sealed }) => {
    const key = await host.secret(CKK.AES, value);
    expect((await host.encrypt(mechanism, key, plain)).toString('hex')).toBe(sealed.toString('hex'));
    expect(await host.decrypt(mechanism, key, sealed)).toEqual(plain);
    answered.add(mechanism.type);
  });

  test.each(namesOf(wraps))('%s wraps and unwraps', async (_name, { key: value, mechanism, value: inner, wrapped }) => {
    const wrappingKey = await host.secret(CKK.AES, value, [CKA.DECRYPT, false]);
    const key = await host.secret(CKK.GENERIC_SECRET, inner);
    expect(await host.wrap(mechanism, wrappingKey, key)).toEqual(wrapped);
    const again = await host.unwrap(mechanism, wrappingKey, wrapped, ...secretRows);
    expect(await host.value(again)).toBe(inner.toString('hex'));
    answered.add(mechanism.type);
  });

  test.each(hkdfs.map((row) => [row.name, row] as const))(
    'HKDF, RFC 5869, %s',
    async (_name, { base, parameter, derived }) => {
      for (const keyType of [CKK.GENERIC_SECRET, CKK.HKDF]) {
        const key = await host.secret(keyType, base);
        const length: Row = [CKA.VALUE_LEN, 42];
        expect(await host.value(await host.derive(mech(CKM.HKDF_DERIVE, parameter), key, ...secretRows, length))).toBe(
          derived,
        );
        expect(await host.value(await host.derive(mech(CKM.HKDF_DATA, parameter), key, length))).toBe(derived);
      }
      answered.add(CKM.HKDF_DERIVE).add(CKM.HKDF_DATA);
    },
  );

  test.each(published)('SP 800-108, CAVP, $name', async ({ keyType, ki, mechanism, ko }) => {
    const key = await host.secret(keyType, Buffer.from(ki, 'hex'));
    const rows: Row[] = [...secretRows, [CKA.VALUE_LEN, ko.length / 2]];
    expect(await host.value(await host.derive(mechanism, key, ...rows))).toBe(ko);
    answered.add(mechanism.type);
  });

  test.each([
    [CKM.AES_ECB_ENCRYPT_DATA, { kind: 'data', data: blocks } as const, CKM.AES_ECB],
    [CKM.AES_CBC_ENCRYPT_DATA, { kind: 'ivdata', iv, data: blocks } as const, CKM.AES_CBC],
  ])('a key by encryption, %i', async (type, parameter, cipher) => {
    const base = await host.secret(CKK.AES, aes128);
    const key = await host.derive(mech(type, parameter), base, ...secretRows);
    const answer = ciphers.find(({ mechanism }) => mechanism.type === cipher);
    expect(await host.value(key)).toBe(answer?.sealed.toString('hex'));
    answered.add(type);
  });

  test('ECDH, RFC 5903, 8.1', async () => {
    const key = await host.create(
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.EC],
      [CKA.EC_PARAMS, curve('p256')],
      [CKA.VALUE, agreement.own],
      [CKA.DERIVE, true],
    );
    const parameter = { kind: 'ecdh1', kdf: CKD.NULL, shared: nothing, publicData: agreement.peer } as const;
    for (const type of [CKM.ECDH1_DERIVE, CKM.ECDH1_COFACTOR_DERIVE]) {
      expect(await host.value(await host.derive(mech(type, parameter), key, ...secretRows))).toBe(agreement.shared);
      answered.add(type);
    }
  });

  test('ECDSA, RFC 6979, A.2.5, verifies', async () => {
    const key = await host.create(
      [CKA.CLASS, CKO.PUBLIC_KEY],
      [CKA.KEY_TYPE, CKK.EC],
      [CKA.EC_PARAMS, curve('p256')],
      [CKA.EC_POINT, Buffer.concat([Buffer.of(4, 65), ecdsaPoint])],
    );
    for (const [type, signature] of ecdsas) {
      const rv = await host.verify(mech(type), key, Buffer.from('sample'), hex(signature));
      expect([mechanismName(type), rv]).toEqual([mechanismName(type), 'CKR_OK']);
    }
  });

  test('Ed25519, RFC 8032, 7.1, test 2', async () => {
    const key = await host.create(
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.EC_EDWARDS],
      [CKA.EC_PARAMS, curve('ed25519')],
      [CKA.VALUE, edwards.secret],
    );
    expect((await host.sign(mech(CKM.EDDSA), key, edwards.data)).toString('hex')).toBe(edwards.signature);
    answered.add(CKM.EDDSA);
  });

  describe('and Node on the other side', () => {
    const nodeRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const nodeEc = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const data = Buffer.from('what is signed');
    let rsa: Awaited<ReturnType<Host['pair']>>;
    let ec: Awaited<ReturnType<Host['pair']>>;
    beforeAll(async () => {
      rsa = await host.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, [CKA.MODULUS_BITS, 2048]);
      ec = await host.pair(CKM.EC_KEY_PAIR_GEN, [CKA.EC_PARAMS, curve('p256')]);
    });

    const parameterOf = (digest: DigestName): MechanismParameter => {
      const { hash, mgf } = digestMechanisms[digest];
      return { kind: 'pss', hash, mgf: mgf ?? 0, saltLength: 13 };
    };
    const optionsFor = (key: KeyObject, isPss: boolean): SignKeyObjectInput => {
      if (key.asymmetricKeyType === 'ec') return { key, dsaEncoding: 'ieee-p1363' };
      return isPss ? { key, padding: nodeConstants.RSA_PKCS1_PSS_PADDING, saltLength: 13 } : { key };
    };
    const signing = mechanismRows.flatMap((row) =>
      row.signature === undefined || row.signature.digest === null
        ? []
        : [[mechanismName(row.type), row, row.signature.digest] as const],
    );
    const isPss = ({ type }: MechanismRow): boolean => mechanismName(type).endsWith('_PSS');

    test.each(signing)('%s', async (_name, row, digest) => {
      const isEc = row.keyTypes.includes(CKK.EC);
      const mechanism = mech(row.type, isPss(row) ? parameterOf(digest) : null);
      const theirs = isEc ? nodeEc : nodeRsa;
      const signature = nodeSign(digest, data, optionsFor(theirs.privateKey, isPss(row)));
      expect(await host.verify(mechanism, await host.publicKey(theirs.publicKey), data, signature)).toBe('CKR_OK');
      if ((row.flags & CKF.SIGN) !== 0) {
        const ours = isEc ? ec : rsa;
        const made = await host.sign(mechanism, ours.privateKey, data);
        expect(nodeVerify(digest, data, optionsFor(ours.node, isPss(row)), made)).toBe(true);
      }
      answered.add(row.type);
    });

    test('CKM_RSA_PKCS, CKM_RSA_PKCS_PSS and CKM_ECDSA take what is hashed already', async () => {
      const hash = hex(digests.sha256);
      const abc = Buffer.from('abc');
      // RFC 8017, 9.2, note 1: the DigestInfo of SHA-256.
      const info = Buffer.concat([hex('3031300d060960864801650304020105000420'), hash]);
      const pkcs1 = await host.sign(mech(CKM.RSA_PKCS), rsa.privateKey, info);
      expect(nodeVerify('sha256', abc, rsa.node, pkcs1)).toBe(true);
      const pss = await host.sign(mech(CKM.RSA_PKCS_PSS, parameterOf('sha256')), rsa.privateKey, hash);
      expect(nodeVerify('sha256', abc, optionsFor(rsa.node, true), pss)).toBe(true);
      const ecdsa = await host.sign(mech(CKM.ECDSA), ec.privateKey, hash);
      expect(nodeVerify('sha256', abc, optionsFor(ec.node, false), ecdsa)).toBe(true);
      answered.add(CKM.RSA_PKCS).add(CKM.RSA_PKCS_PSS).add(CKM.ECDSA);
    });

    const withMask = (Object.keys(digestMechanisms) as DigestName[]).filter(
      (name) => digestMechanisms[name].mgf !== null,
    );
    test.each(withMask)('CKM_RSA_PKCS_OAEP with %s', async (digest) => {
      const { hash, mgf } = digestMechanisms[digest];
      const label = Buffer.from('label');
      const mechanism = mech(CKM.RSA_PKCS_OAEP, { kind: 'oaep', hash, mgf: mgf ?? 0, source: 1, label });
      const options = { oaepHash: digest, oaepLabel: label, padding: nodeConstants.RSA_PKCS1_OAEP_PADDING };
      const toUs = publicEncrypt({ key: rsa.node, ...options }, data);
      expect(await host.decrypt(mechanism, rsa.privateKey, toUs)).toEqual(data);
      const toThem = await host.encrypt(mechanism, await host.publicKey(nodeRsa.publicKey), data);
      expect(privateDecrypt({ key: nodeRsa.privateKey, ...options }, toThem)).toEqual(data);
      answered.add(CKM.RSA_PKCS_OAEP);
    });
  });
});

test('every mechanism but the generators has had its answer', () => {
  const generators = CKF.GENERATE | CKF.GENERATE_KEY_PAIR;
  const missing = mechanismRows.filter(({ type, flags }) => (flags & generators) === 0 && !answered.has(type));
  expect(missing.map(({ type }) => mechanismName(type))).toEqual([]);
});
