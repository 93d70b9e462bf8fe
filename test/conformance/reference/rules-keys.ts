// Keys generated, wrapped, unwrapped and derived: PKCS#11 2.40, section 5.14.
import { createECDH, createPublicKey, diffieHellman } from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { CKD, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import {
  type Bench,
  mechanismOf,
  p256,
  type Rule,
  readable,
  rule,
  rvOf,
  type Seen,
  template,
  type Wanted,
} from './bench.ts';
import { ecPrivate, importedEc, rsaPrivate, rsaPublic } from './rules-objects.ts';

const nowhere = Buffer.from('efbeadde00000000', 'hex');
const where = ['session', 'token'] as const;
const placed = (place: (typeof where)[number], label: string): Wanted =>
  place === 'token' ? { TOKEN: true, LABEL: `${label} ${Math.random()}` } : {};
const secretKey = (keyType: number, wanted: Wanted = {}): pkcs11js.Template =>
  template({ CLASS: CKO.SECRET_KEY, KEY_TYPE: keyType, ...readable, ...wanted });

const made: Readonly<Record<string, Seen>> = {
  LOCAL: true,
  SENSITIVE: true,
  ALWAYS_SENSITIVE: true,
  EXTRACTABLE: false,
  NEVER_EXTRACTABLE: true,
  PRIVATE: true,
};
const names = Object.keys(made) as (keyof typeof made & 'LOCAL')[];
const generateRules: readonly Rule[] = where.flatMap((place): Rule[] => [
  rule(
    `C_GenerateKey of an AES key of the ${place}: what is computed, and what is as it was asked for`,
    '5.14',
    {
      ...made,
      VALUE_LEN: 32,
      KEY_GEN_MECHANISM: CKM.AES_KEY_GEN,
      VALUE: 'CKR_ATTRIBUTE_SENSITIVE',
      ID: '0102',
    },
    (on) => {
      const wanted = { ...placed(place, 'generated'), SENSITIVE: true, EXTRACTABLE: false, ID: Buffer.of(1, 2) };
      const key = on.generate(wanted);
      return Object.fromEntries(
        ([...names, 'VALUE_LEN', 'KEY_GEN_MECHANISM', 'VALUE', 'ID'] as const).map((name) => [
          name,
          on.read(key, name),
        ]),
      );
    },
  ),
  rule(
    `C_GenerateKey of a readable AES key of the ${place}: it was never otherwise`,
    '5.14',
    { sensitive: false, always: false, extractable: true, never: false, length: 16 },
    (on) => {
      const key = on.generate({ ...placed(place, 'readable'), ...readable, VALUE_LEN: 16 });
      return {
        sensitive: on.read(key, 'SENSITIVE'),
        always: on.read(key, 'ALWAYS_SENSITIVE'),
        extractable: on.read(key, 'EXTRACTABLE'),
        never: on.read(key, 'NEVER_EXTRACTABLE'),
        length: on.value(key, 'VALUE').length,
      };
    },
  ),
  rule(`C_GenerateKey of a generic secret of the ${place}`, '5.14', { type: CKK.GENERIC_SECRET, length: 40 }, (on) => {
    const wanted = {
      CLASS: CKO.SECRET_KEY,
      KEY_TYPE: CKK.GENERIC_SECRET,
      VALUE_LEN: 40,
      SIGN: true,
      ...placed(place, 'generic'),
    };
    const key = on.pkcs11.C_GenerateKey(on.session, { mechanism: CKM.GENERIC_SECRET_KEY_GEN }, template(wanted));
    return { type: on.read(key, 'KEY_TYPE'), length: on.read(key, 'VALUE_LEN') };
  }),
  rule(
    `C_GenerateKeyPair of RSA keys of the ${place}: both halves say what they are`,
    '5.14',
    {
      modulus: true,
      bits: 2048,
      exponent: '010001',
      publicId: '07',
      privateId: '07',
      local: [true, true],
      sensitive: [true, true, true],
      exponentOfPrivate: 'CKR_ATTRIBUTE_SENSITIVE',
      mechanism: CKM.RSA_PKCS_KEY_PAIR_GEN,
    },
    (on) => {
      const label = { ...placed(place, 'RSA pair'), ID: Buffer.of(7) };
      const { publicKey, privateKey } = on.rsaPair(label, { ...label, SENSITIVE: true, EXTRACTABLE: false });
      return {
        modulus: on.read(publicKey, 'MODULUS') === on.read(privateKey, 'MODULUS'),
        bits: on.read(publicKey, 'MODULUS_BITS'),
        exponent: on.read(publicKey, 'PUBLIC_EXPONENT'),
        publicId: on.read(publicKey, 'ID'),
        privateId: on.read(privateKey, 'ID'),
        local: [on.read(publicKey, 'LOCAL'), on.read(privateKey, 'LOCAL')],
        sensitive: (['SENSITIVE', 'ALWAYS_SENSITIVE', 'NEVER_EXTRACTABLE'] as const).map((name) =>
          on.read(privateKey, name),
        ),
        exponentOfPrivate: on.read(privateKey, 'PRIVATE_EXPONENT'),
        mechanism: on.read(privateKey, 'KEY_GEN_MECHANISM'),
      };
    },
  ),
  rule(
    `C_GenerateKeyPair of keys on P-256 of the ${place}: both halves say what they are`,
    '5.14',
    { parameters: [p256.toString('hex'), p256.toString('hex')], point: 67, value: 'CKR_ATTRIBUTE_SENSITIVE' },
    (on) => {
      const label = placed(place, 'EC pair');
      const { publicKey, privateKey } = on.ecPair(p256, label, label);
      return {
        parameters: [on.read(publicKey, 'EC_PARAMS'), on.read(privateKey, 'EC_PARAMS')],
        point: on.value(publicKey, 'EC_POINT').length,
        value: on.read(privateKey, 'VALUE'),
      };
    },
  ),
]);

const wrongRules: readonly Rule[] = [
  rule('C_GenerateKey without a length', '5.14', 'CKR_TEMPLATE_INCOMPLETE', (on) =>
    rvOf(() => on.generate({ VALUE_LEN: undefined })),
  ),
  rule('C_GenerateKey of 17 bytes', '5.14', 'CKR_ATTRIBUTE_VALUE_INVALID', (on) =>
    rvOf(() => on.generate({ VALUE_LEN: 17 })),
  ),
  rule('C_GenerateKey with a value', '5.14', 'CKR_TEMPLATE_INCONSISTENT', (on) =>
    rvOf(() => on.generate({ VALUE: Buffer.alloc(32) })),
  ),
  rule('C_GenerateKey of another class', '5.14', 'CKR_TEMPLATE_INCONSISTENT', (on) =>
    rvOf(() => on.generate({ CLASS: CKO.PUBLIC_KEY })),
  ),
  rule('C_GenerateKey of another type', '5.14', 'CKR_TEMPLATE_INCONSISTENT', (on) =>
    rvOf(() => on.generate({ KEY_TYPE: CKK.GENERIC_SECRET })),
  ),
  rule('C_GenerateKey with a mechanism of ciphers', '5.14', 'CKR_MECHANISM_INVALID', (on) =>
    rvOf(() => on.generate({}, CKM.AES_ECB)),
  ),
  rule('C_GenerateKeyPair of RSA without the number of bits', '5.14', 'CKR_TEMPLATE_INCOMPLETE', (on) =>
    rvOf(() => on.rsaPair({ MODULUS_BITS: undefined })),
  ),
  rule('C_GenerateKeyPair of RSA with 1024 bits', '5.14', 'CKR_OK', (on) =>
    rvOf(() => on.rsaPair({ MODULUS_BITS: 1024 })),
  ),
  rule('C_GenerateKeyPair on a curve without a name', '5.14', 'CKR_TEMPLATE_INCOMPLETE', (on) =>
    rvOf(() => on.ecPair(p256, { EC_PARAMS: undefined })),
  ),
  rule('C_GenerateKeyPair on an unknown curve', '5.14', 'CKR_CURVE_NOT_SUPPORTED', (on) =>
    rvOf(() => on.ecPair(Buffer.from('06032a0304', 'hex'))),
  ),
];

const keyWrap = { mechanism: CKM.AES_KEY_WRAP };
const keyWrapPad = { mechanism: CKM.AES_KEY_WRAP_PAD };
const oaep = mechanismOf<pkcs11js.RsaOAEP>(CKM.RSA_PKCS_OAEP, {
  type: pkcs11js.CK_PARAMS_RSA_OAEP,
  hashAlg: CKM.SHA_1,
  mgf: 1,
  source: 1,
  sourceData: Buffer.alloc(0),
});
/** RFC 3394, section 4.6, and RFC 5649, section 6. */
const kek256 = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex');
const data256 = Buffer.from('00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f', 'hex');
const wrapped256 = '28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21';
/**
 * For rules without an earlier wrapping of a sensitive key: a key's wrappings, in any session,
 * decide what it may unwrap.
 */
const otherKek = Buffer.alloc(32, 0x77);
const kek192 = Buffer.from('5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8', 'hex');
const data20 = Buffer.from('c37b7e6492584340bed12207808941155068f738', 'hex');
const wrapped20 = '138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a';

const wrapping: Wanted = { ENCRYPT: false, DECRYPT: false, SIGN: false, VERIFY: false, WRAP: true, UNWRAP: true };
const wrap = (on: Bench, mechanism: pkcs11js.Mechanism, by: Buffer, key: Buffer): Buffer =>
  on.pkcs11.C_WrapKey(on.session, mechanism, by, key, Buffer.alloc(2500));
const unwrap = (
  on: Bench,
  mechanism: pkcs11js.Mechanism,
  by: Buffer,
  wrapped: Buffer,
  wanted: pkcs11js.Template,
): Buffer => on.pkcs11.C_UnwrapKey(on.session, mechanism, by, wrapped, wanted);

const wrapRules: readonly Rule[] = [
  ...where.flatMap((place): Rule[] => [
    rule(
      `CKM_AES_KEY_WRAP under a key of the ${place}: the published result, and back`,
      '5.14',
      { wrapped: wrapped256, back: data256.toString('hex'), local: false, never: false, always: false },
      (on) => {
        const by = on.aes(kek256, { ...wrapping, ...placed(place, 'wraps') });
        const wrapped = wrap(on, keyWrap, by, on.aes(data256));
        const back = unwrap(on, keyWrap, by, wrapped, secretKey(CKK.AES));
        return {
          wrapped: wrapped.toString('hex'),
          back: on.read(back, 'VALUE'),
          local: on.read(back, 'LOCAL'),
          never: on.read(back, 'NEVER_EXTRACTABLE'),
          always: on.read(back, 'ALWAYS_SENSITIVE'),
        };
      },
    ),
    rule(
      `CKM_AES_KEY_WRAP_PAD under a key of the ${place}: the published result, and back`,
      '5.14',
      { wrapped: wrapped20, back: data20.toString('hex') },
      (on) => {
        const by = on.aes(kek192, { ...wrapping, ...placed(place, 'wraps padded') });
        const wrapped = wrap(on, keyWrapPad, by, on.generic(data20));
        const back = unwrap(on, keyWrapPad, by, wrapped, secretKey(CKK.GENERIC_SECRET));
        return { wrapped: wrapped.toString('hex'), back: on.read(back, 'VALUE') };
      },
    ),
    rule(
      `CKM_RSA_PKCS_OAEP wraps under a public key of the ${place} and unwraps with its private key`,
      '5.14',
      data256.toString('hex'),
      (on) => {
        const label = placed(place, 'RSA wraps');
        const publicKey = on.create({ ...rsaPublic, WRAP: true, ENCRYPT: false, ...label });
        const privateKey = on.create({ ...rsaPrivate, UNWRAP: true, DECRYPT: false, ...label });
        const wrapped = wrap(on, oaep, publicKey, on.aes(data256));
        return on.read(unwrap(on, oaep, privateKey, wrapped, secretKey(CKK.AES)), 'VALUE');
      },
    ),
    rule(
      `a private RSA key is wrapped under a key of the ${place}, and signs when it is back`,
      '5.14',
      'CKR_OK',
      (on) => {
        const by = on.aes(kek256, { ...wrapping, ...placed(place, 'wraps private') });
        const key = on.create({ ...rsaPrivate, SIGN: true, SENSITIVE: false, EXTRACTABLE: true });
        const wrapped = wrap(on, keyWrapPad, by, key);
        const wanted = template({ CLASS: CKO.PRIVATE_KEY, KEY_TYPE: CKK.RSA, SIGN: true });
        const back = unwrap(on, keyWrapPad, by, wrapped, wanted);
        const signature = on.sign({ mechanism: CKM.SHA256_RSA_PKCS }, back, data20);
        return on.verify(
          { mechanism: CKM.SHA256_RSA_PKCS },
          on.create({ ...rsaPublic, VERIFY: true }),
          data20,
          signature,
        );
      },
    ),
  ]),
  rule('C_WrapKey of a key that is not extractable', '5.14', 'CKR_KEY_UNEXTRACTABLE', (on) =>
    rvOf(() => wrap(on, keyWrap, on.aes(kek256, wrapping), on.aes(data256, { EXTRACTABLE: false }))),
  ),
  rule('C_WrapKey of a sensitive key that is extractable', '5.14', 'CKR_OK', (on) =>
    rvOf(() => wrap(on, keyWrap, on.aes(kek256, wrapping), on.aes(data256, { SENSITIVE: true, EXTRACTABLE: true }))),
  ),
  rule('C_WrapKey of a sensitive key under a key that may decrypt', '5.14', 'CKR_OK', (on) =>
    rvOf(() =>
      wrap(
        on,
        keyWrap,
        on.aes(Buffer.alloc(32, 0x78), { DECRYPT: true }),
        on.aes(data256, { SENSITIVE: true, EXTRACTABLE: true }),
      ),
    ),
  ),
  rule('C_WrapKey under a key that does not wrap', '5.14', 'CKR_KEY_FUNCTION_NOT_PERMITTED', (on) =>
    rvOf(() => wrap(on, keyWrap, on.aes(kek256, { WRAP: false }), on.aes(data256))),
  ),
  rule(
    'C_WrapKey under no key, and of no key',
    '5.14',
    ['CKR_WRAPPING_KEY_HANDLE_INVALID', 'CKR_KEY_HANDLE_INVALID'],
    (on) => [
      rvOf(() => wrap(on, keyWrap, nowhere, on.aes(data256))),
      rvOf(() => wrap(on, keyWrap, on.aes(kek256, wrapping), nowhere)),
    ],
  ),
  rule('C_WrapKey under a key of another type', '5.14', 'CKR_WRAPPING_KEY_TYPE_INCONSISTENT', (on) =>
    rvOf(() => wrap(on, keyWrap, on.generic(kek256, { WRAP: true }), on.aes(data256))),
  ),
  rule('C_WrapKey only under a trusted key, when the key says so', '4.10', 'CKR_KEY_NOT_WRAPPABLE', (on) =>
    rvOf(() => wrap(on, keyWrap, on.aes(kek256, wrapping), on.aes(data256, { WRAP_WITH_TRUSTED: true }))),
  ),
  rule('a buffer that is too small: C_WrapKey', '5.2', ['CKR_BUFFER_TOO_SMALL', 'CKR_OK'], (on) => {
    const [by, key] = [on.aes(kek256, wrapping), on.aes(data256)];
    return [39, 40].map((room) => rvOf(() => on.pkcs11.C_WrapKey(on.session, keyWrap, by, key, Buffer.alloc(room))));
  }),
  rule('C_UnwrapKey of what was changed', '5.14', 'CKR_WRAPPED_KEY_INVALID', (on) => {
    const changed = Buffer.from(wrapped256, 'hex');
    changed[9] = (changed[9] ?? 0) ^ 1;
    return rvOf(() => unwrap(on, keyWrap, on.aes(otherKek, wrapping), changed, secretKey(CKK.AES)));
  }),
  rule('C_UnwrapKey of 39 bytes', '5.14', 'CKR_WRAPPED_KEY_LEN_RANGE', (on) => {
    const short = Buffer.from(wrapped256, 'hex').subarray(1);
    return rvOf(() => unwrap(on, keyWrap, on.aes(otherKek, wrapping), short, secretKey(CKK.AES)));
  }),
  rule('C_UnwrapKey with no key', '5.14', 'CKR_UNWRAPPING_KEY_HANDLE_INVALID', (on) =>
    rvOf(() => unwrap(on, keyWrap, nowhere, Buffer.from(wrapped256, 'hex'), secretKey(CKK.AES))),
  ),
  rule('C_UnwrapKey with a key that does not unwrap', '5.14', 'CKR_KEY_FUNCTION_NOT_PERMITTED', (on) =>
    rvOf(() =>
      unwrap(on, keyWrap, on.aes(kek256, { UNWRAP: false }), Buffer.from(wrapped256, 'hex'), secretKey(CKK.AES)),
    ),
  ),
  rule(
    'C_UnwrapKey: what the key says when its template does not',
    '5.14',
    { EXTRACTABLE: true, ALWAYS_SENSITIVE: false, NEVER_EXTRACTABLE: false, LOCAL: false },
    (on) => {
      const key = on.aes(kek256, { ...wrapping, SENSITIVE: true, EXTRACTABLE: false });
      const wanted = template({ CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.AES, SENSITIVE: true });
      const made = unwrap(on, keyWrap, key, Buffer.from(wrapped256, 'hex'), wanted);
      const names = ['EXTRACTABLE', 'ALWAYS_SENSITIVE', 'NEVER_EXTRACTABLE', 'LOCAL'] as const;
      return Object.fromEntries(names.map((name) => [name, on.read(made, name)]));
    },
  ),
  rule('C_UnwrapKey without a type of key', '5.14', 'CKR_TEMPLATE_INCOMPLETE', (on) => {
    const wanted = template({ CLASS: CKO.SECRET_KEY });
    return rvOf(() => unwrap(on, keyWrap, on.aes(kek256, wrapping), Buffer.from(wrapped256, 'hex'), wanted));
  }),
];

/** The secret that both sides of an agreement have. */
const agreed = (point: Buffer): Buffer => {
  const spki = Buffer.concat([Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'), point]);
  return diffieHellman({
    privateKey: importedEc,
    publicKey: createPublicKey({ key: spki, format: 'der', type: 'spki' }),
  });
};
const ecdh = (publicData: Buffer, kdf: number = CKD.NULL): pkcs11js.Mechanism =>
  mechanismOf<pkcs11js.ECDH1>(CKM.ECDH1_DERIVE, { type: pkcs11js.CK_PARAMS_EC_DH, kdf, publicData });
const peer = createECDH('prime256v1').generateKeys();
const deriveRules: readonly Rule[] = [
  ...where.flatMap((place): Rule[] => [
    rule(`CKM_ECDH1_DERIVE with a private key of the ${place}`, '5.14', agreed(peer).toString('hex'), (on) => {
      const privateKey = on.create({ ...ecPrivate, DERIVE: true, ...placed(place, 'ECDH') });
      const wanted = secretKey(CKK.GENERIC_SECRET, { VALUE_LEN: 32 });
      return on.read(on.pkcs11.C_DeriveKey(on.session, ecdh(peer), privateKey, wanted), 'VALUE');
    }),
    rule(
      `CKM_ECDH1_DERIVE with a private key of the ${place}, of a shorter key: the last bytes`,
      'mechanisms 2.3',
      agreed(peer).subarray(16).toString('hex'),
      (on) => {
        const privateKey = on.create({ ...ecPrivate, DERIVE: true, ...placed(place, 'ECDH') });
        const wanted = secretKey(CKK.AES, { VALUE_LEN: 16 });
        return on.read(on.pkcs11.C_DeriveKey(on.session, ecdh(peer), privateKey, wanted), 'VALUE');
      },
    ),
  ]),
  rule('CKM_ECDH1_DERIVE with the point of the other as an OCTET STRING', 'mechanisms 2.3', 'CKR_OK', (on) => {
    const privateKey = on.create({ ...ecPrivate, DERIVE: true });
    const wanted = secretKey(CKK.GENERIC_SECRET, { VALUE_LEN: 32 });
    const wrapped = Buffer.concat([Buffer.of(4, 65), peer]);
    return rvOf(() => on.pkcs11.C_DeriveKey(on.session, ecdh(wrapped), privateKey, wanted));
  }),
  rule(
    'CKM_ECDH1_DERIVE with a point that is not on the curve',
    'mechanisms 2.3',
    'CKR_MECHANISM_PARAM_INVALID',
    (on) => {
      const privateKey = on.create({ ...ecPrivate, DERIVE: true });
      const point = Buffer.from(peer);
      point[64] = (point[64] ?? 0) ^ 1;
      const wanted = secretKey(CKK.GENERIC_SECRET, { VALUE_LEN: 32 });
      return rvOf(() => on.pkcs11.C_DeriveKey(on.session, ecdh(point), privateKey, wanted));
    },
  ),
  rule('C_DeriveKey with a key that does not derive', '5.14', 'CKR_KEY_FUNCTION_NOT_PERMITTED', (on) => {
    const privateKey = on.create({ ...ecPrivate, DERIVE: false });
    const wanted = secretKey(CKK.GENERIC_SECRET, { VALUE_LEN: 32 });
    return rvOf(() => on.pkcs11.C_DeriveKey(on.session, ecdh(peer), privateKey, wanted));
  }),
  rule('C_DeriveKey with no key', '5.14', 'CKR_KEY_HANDLE_INVALID', (on) => {
    const wanted = secretKey(CKK.GENERIC_SECRET, { VALUE_LEN: 32 });
    return rvOf(() => on.pkcs11.C_DeriveKey(on.session, ecdh(peer), nowhere, wanted));
  }),
];

export const keyRules: readonly Rule[] = [...generateRules, ...wrongRules, ...wrapRules, ...deriveRules];
