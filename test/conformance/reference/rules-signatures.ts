// Signatures and MACs against node:crypto: PKCS#11 2.40, sections 5.11 and 5.12.
import {
  constants,
  createHash,
  createHmac,
  createPublicKey,
  type KeyObject,
  sign as nodeSign,
  verify as nodeVerify,
} from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { CKG, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { type Bench, ed25519, type Pair, p256, type Rule, rule, rvOf, type Wanted } from './bench.ts';
import { ecPrivate, ecPublic, importedEc, importedRsa, rsaPrivate, rsaPublic } from './rules-objects.ts';

const data = Buffer.from(
  'what is signed, of more than one block of any hash, so that parts are parts: 0123456789abcdef',
);
const other = Buffer.from('something else');

/** The public half of a pair on a curve, as others hold it. */
const pointKey = (point: Buffer, algorithm: string): KeyObject =>
  createPublicKey({ key: Buffer.concat([Buffer.from(algorithm, 'hex'), point]), format: 'der', type: 'spki' });
/** An EC_POINT is an OCTET STRING of the point. */
const unwrapped = (octets: Buffer): Buffer =>
  octets.subarray(octets.length === 0x43 || octets.length === 0x22 ? 2 : octets[1] === 0x81 ? 3 : 2);

const curves = {
  'P-256': { parameters: p256, spki: '3059301306072a8648ce3d020106082a8648ce3d030107034200', hash: 'sha256' },
  'P-384': {
    parameters: Buffer.from('06052b81040022', 'hex'),
    spki: '3076301006072a8648ce3d020106052b8104002203620' + '0',
    hash: 'sha384',
  },
  'P-521': {
    parameters: Buffer.from('06052b81040023', 'hex'),
    spki: '30819b301006072a8648ce3d020106052b810400230381860' + '0',
    hash: 'sha512',
  },
} as const;

const where = ['session', 'token'] as const;
const placed = (place: (typeof where)[number], label: string): Wanted =>
  place === 'token' ? { TOKEN: true, LABEL: `${label} ${Math.random()}` } : {};

const inParts = (on: Bench, mechanism: pkcs11js.Mechanism, key: Buffer): Buffer => {
  on.pkcs11.C_SignInit(on.session, mechanism, key);
  for (let at = 0; at < data.length; at += 19) on.pkcs11.C_SignUpdate(on.session, data.subarray(at, at + 19));
  return on.pkcs11.C_SignFinal(on.session, Buffer.alloc(1024));
};
const verifiedInParts = (on: Bench, mechanism: pkcs11js.Mechanism, key: Buffer, signature: Buffer): string =>
  rvOf(() => {
    on.pkcs11.C_VerifyInit(on.session, mechanism, key);
    for (let at = 0; at < data.length; at += 19) on.pkcs11.C_VerifyUpdate(on.session, data.subarray(at, at + 19));
    on.pkcs11.C_VerifyFinal(on.session, signature);
  });

const hashes = { SHA224: 'sha224', SHA256: 'sha256', SHA384: 'sha384', SHA512: 'sha512' } as const;
type HashName = keyof typeof hashes;

const hmacs = { SHA_1: 'sha1', ...hashes } as const;
const secret = Buffer.alloc(64, 0x5a);
const macRules: readonly Rule[] = where.flatMap((place) => [
  ...(Object.entries(hmacs) as [keyof typeof hmacs, string][]).map(
    ([name, algorithm]): Rule =>
      rule(
        `CKM_${name}_HMAC with a key of the ${place}: whole, in parts, and verified`,
        '5.11, 5.12',
        {
          whole: createHmac(algorithm, secret).update(data).digest('hex'),
          parts: createHmac(algorithm, secret).update(data).digest('hex'),
          right: 'CKR_OK',
          rightInParts: 'CKR_OK',
          wrong: 'CKR_SIGNATURE_INVALID',
          short: 'CKR_SIGNATURE_LEN_RANGE',
        },
        (on) => {
          const mechanism = { mechanism: CKM[`${name}_HMAC`] };
          const key = on.generic(secret, placed(place, `${name} HMAC`));
          const whole = on.sign(mechanism, key, data);
          return {
            whole: whole.toString('hex'),
            parts: inParts(on, mechanism, key).toString('hex'),
            right: on.verify(mechanism, key, data, whole),
            rightInParts: verifiedInParts(on, mechanism, key, whole),
            wrong: on.verify(mechanism, key, other, whole),
            short: on.verify(mechanism, key, data, whole.subarray(1)),
          };
        },
      ),
  ),
  {
    name: `CKM_AES_CMAC with a key of the ${place}: whole, in parts, and verified`,
    section: '5.11, 5.12',
    // RFC 4493, section 4, example 2.
    expected: {
      whole: '070a16b46b4d4144f79bdd9dd04a287c',
      parts: 'CKR_OK',
      right: 'CKR_OK',
      wrong: 'CKR_SIGNATURE_INVALID',
    },
    look: (on) => {
      const mechanism = { mechanism: CKM.AES_CMAC };
      const key = on.aes(Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex'), placed(place, 'CMAC'));
      const block = Buffer.from('6bc1bee22e409f96e93d7e117393172a', 'hex');
      const whole = on.sign(mechanism, key, block);
      return {
        whole: whole.toString('hex'),
        parts: on.verify(mechanism, key, data, inParts(on, mechanism, key)),
        right: on.verify(mechanism, key, block, whole),
        wrong: on.verify(mechanism, key, other, whole),
      };
    },
  },
]);

const rsaPair = (on: Bench, place: (typeof where)[number]): Pair => ({
  privateKey: on.create({ ...rsaPrivate, SIGN: true, ...placed(place, 'RSA') }),
  publicKey: on.create({ ...rsaPublic, VERIFY: true, ...placed(place, 'RSA') }),
});
const publicRsa = createPublicKey(importedRsa);

const rsaRules: readonly Rule[] = where.flatMap((place) => [
  ...(Object.entries(hashes) as [HashName, string][]).flatMap(([name, algorithm]): Rule[] => [
    rule(
      `CKM_${name}_RSA_PKCS with a key of the ${place}: whole, in parts, and verified`,
      '5.11, 5.12',
      {
        whole: nodeSign(algorithm, data, importedRsa).toString('hex'),
        parts: nodeSign(algorithm, data, importedRsa).toString('hex'),
        right: 'CKR_OK',
        rightInParts: 'CKR_OK',
        wrong: 'CKR_SIGNATURE_INVALID',
        short: 'CKR_SIGNATURE_LEN_RANGE',
      },
      (on) => {
        const mechanism = { mechanism: CKM[`${name}_RSA_PKCS`] };
        const { privateKey, publicKey } = rsaPair(on, place);
        const whole = on.sign(mechanism, privateKey, data);
        return {
          whole: whole.toString('hex'),
          parts: inParts(on, mechanism, privateKey).toString('hex'),
          right: on.verify(mechanism, publicKey, data, whole),
          rightInParts: verifiedInParts(on, mechanism, publicKey, whole),
          wrong: on.verify(mechanism, publicKey, other, whole),
          short: on.verify(mechanism, publicKey, data, whole.subarray(1)),
        };
      },
    ),
    rule(
      `CKM_${name}_RSA_PKCS_PSS with a key of the ${place}: whole, in parts, and verified`,
      '5.11, 5.12',
      { whole: true, parts: true, right: 'CKR_OK', wrong: 'CKR_SIGNATURE_INVALID' },
      (on) => {
        const saltLen = createHash(algorithm).digest().length;
        const parameter = { type: pkcs11js.CK_PARAMS_RSA_PSS, hashAlg: CKM[name], mgf: CKG[`MGF1_${name}`], saltLen };
        const mechanism = { mechanism: CKM[`${name}_RSA_PKCS_PSS`], parameter };
        const { privateKey, publicKey } = rsaPair(on, place);
        const theirs = { key: publicRsa, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: saltLen };
        const whole = on.sign(mechanism, privateKey, data);
        return {
          whole: nodeVerify(algorithm, data, theirs, whole),
          parts: nodeVerify(algorithm, data, theirs, inParts(on, mechanism, privateKey)),
          right: on.verify(mechanism, publicKey, data, whole),
          wrong: on.verify(mechanism, publicKey, other, whole),
        };
      },
    ),
  ]),
  rule(
    `CKM_RSA_PKCS with a key of the ${place}, over a DigestInfo`,
    '5.11, 5.12',
    {
      whole: nodeSign('sha256', data, importedRsa).toString('hex'),
      right: 'CKR_OK',
      tooLong: 'CKR_DATA_LEN_RANGE',
    },
    (on) => {
      const info = Buffer.concat([
        Buffer.from('3031300d060960864801650304020105000420', 'hex'),
        createHash('sha256').update(data).digest(),
      ]);
      const { privateKey, publicKey } = rsaPair(on, place);
      const whole = on.sign({ mechanism: CKM.RSA_PKCS }, privateKey, info);
      return {
        whole: whole.toString('hex'),
        right: on.verify({ mechanism: CKM.RSA_PKCS }, publicKey, info, whole),
        tooLong: rvOf(() => on.sign({ mechanism: CKM.RSA_PKCS }, privateKey, Buffer.alloc(246))),
      };
    },
  ),
  rule(
    `CKM_RSA_PKCS_PSS with a key of the ${place}, over a digest`,
    '5.11, 5.12',
    { theirs: true, right: 'CKR_OK', wrongLength: 'CKR_DATA_LEN_RANGE' },
    (on) => {
      const parameter = { type: pkcs11js.CK_PARAMS_RSA_PSS, hashAlg: CKM.SHA256, mgf: CKG.MGF1_SHA256, saltLen: 32 };
      const mechanism = { mechanism: CKM.RSA_PKCS_PSS, parameter };
      const digest = createHash('sha256').update(data).digest();
      const { privateKey, publicKey } = rsaPair(on, place);
      const whole = on.sign(mechanism, privateKey, digest);
      const theirs = { key: publicRsa, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
      return {
        theirs: nodeVerify('sha256', data, theirs, whole),
        right: on.verify(mechanism, publicKey, digest, whole),
        wrongLength: rvOf(() => on.sign(mechanism, privateKey, digest.subarray(1))),
      };
    },
  ),
]);

const curveRules: readonly Rule[] = where.flatMap((place) => [
  ...Object.entries(curves).map(
    ([curve, { parameters, spki, hash }]): Rule =>
      rule(
        `CKM_ECDSA with a pair on ${curve} that the ${place} made`,
        '5.11, 5.12',
        { theirs: true, right: 'CKR_OK', wrong: 'CKR_SIGNATURE_INVALID', short: 'CKR_SIGNATURE_LEN_RANGE' },
        (on) => {
          const digest = createHash(hash).update(data).digest();
          const label = placed(place, curve);
          const { publicKey, privateKey } = on.ecPair(parameters, label, label);
          const signature = on.sign({ mechanism: CKM.ECDSA }, privateKey, digest);
          const key = pointKey(unwrapped(on.value(publicKey, 'EC_POINT')), spki);
          const verify = (over: Buffer, made: Buffer): string =>
            on.verify({ mechanism: CKM.ECDSA }, publicKey, over, made);
          return {
            theirs: nodeVerify(hash, data, { key, dsaEncoding: 'ieee-p1363' }, signature),
            right: verify(digest, signature),
            wrong: verify(createHash(hash).update(other).digest(), signature),
            short: verify(digest, signature.subarray(2)),
          };
        },
      ),
  ),
  rule(`CKM_ECDSA with a key of others on the ${place}`, '5.11, 5.12', { theirs: true, right: 'CKR_OK' }, (on) => {
    const digest = createHash('sha256').update(data).digest();
    const privateKey = on.create({ ...ecPrivate, SIGN: true, ...placed(place, 'EC') });
    const publicKey = on.create({ ...ecPublic, VERIFY: true, ...placed(place, 'EC') });
    const signature = on.sign({ mechanism: CKM.ECDSA }, privateKey, digest);
    return {
      theirs: nodeVerify('sha256', data, { key: createPublicKey(importedEc), dsaEncoding: 'ieee-p1363' }, signature),
      right: on.verify({ mechanism: CKM.ECDSA }, publicKey, digest, signature),
    };
  }),
  rule(
    `CKM_EDDSA with a pair that the ${place} made`,
    '5.11, 5.12',
    { theirs: true, right: 'CKR_OK', wrong: 'CKR_SIGNATURE_INVALID' },
    (on) => {
      const label = placed(place, 'Ed25519');
      const { publicKey, privateKey } = on.ecPair(ed25519, label, label);
      const signature = on.sign({ mechanism: CKM.EDDSA }, privateKey, data);
      const key = pointKey(unwrapped(on.value(publicKey, 'EC_POINT')), '302a300506032b6570032100');
      return {
        theirs: nodeVerify(null, data, key, signature),
        right: on.verify({ mechanism: CKM.EDDSA }, publicKey, data, signature),
        wrong: on.verify({ mechanism: CKM.EDDSA }, publicKey, other, signature),
      };
    },
  ),
]);

const stateRules: readonly Rule[] = [
  rule(
    'a buffer that is too small keeps the operation: C_Sign',
    '5.2',
    ['CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_OPERATION_NOT_INITIALIZED'],
    (on) => {
      on.pkcs11.C_SignInit(on.session, { mechanism: CKM.SHA256_HMAC }, on.generic(secret));
      return [31, 32, 32].map((room) => rvOf(() => on.pkcs11.C_Sign(on.session, data, Buffer.alloc(room))));
    },
  ),
  rule(
    'a buffer that is too small keeps the operation: C_SignFinal of an RSA key',
    '5.2',
    ['CKR_BUFFER_TOO_SMALL', 'CKR_OK', 'CKR_OPERATION_NOT_INITIALIZED'],
    (on) => {
      on.pkcs11.C_SignInit(on.session, { mechanism: CKM.SHA256_RSA_PKCS }, on.create({ ...rsaPrivate, SIGN: true }));
      on.pkcs11.C_SignUpdate(on.session, data);
      return [255, 256, 256].map((room) => rvOf(() => on.pkcs11.C_SignFinal(on.session, Buffer.alloc(room))));
    },
  ),
  rule(
    'C_Sign and C_Verify without an Init',
    '5.11, 5.12',
    ['CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED'],
    ({ pkcs11, session }) => [
      rvOf(() => pkcs11.C_Sign(session, data, Buffer.alloc(64))),
      rvOf(() => pkcs11.C_Verify(session, data, Buffer.alloc(64))),
    ],
  ),
  rule(
    'a verification ends its operation, right or wrong',
    '5.12',
    ['CKR_SIGNATURE_INVALID', 'CKR_OPERATION_NOT_INITIALIZED'],
    (on) => {
      on.pkcs11.C_VerifyInit(on.session, { mechanism: CKM.SHA256_HMAC }, on.generic(secret));
      return [0, 1].map(() => rvOf(() => on.pkcs11.C_Verify(on.session, data, Buffer.alloc(32))));
    },
  ),
  rule('CKM_RSA_PKCS_PSS without its parameter', 'mechanisms 2.1', 'CKR_MECHANISM_PARAM_INVALID', (on) =>
    rvOf(() =>
      on.pkcs11.C_SignInit(
        on.session,
        { mechanism: CKM.SHA256_RSA_PKCS_PSS },
        on.create({ ...rsaPrivate, SIGN: true }),
      ),
    ),
  ),
  rule('new signatures over SHA-1', 'mechanisms 2.1', 'CKR_OK', (on) =>
    rvOf(() =>
      on.pkcs11.C_SignInit(on.session, { mechanism: CKM.SHA1_RSA_PKCS }, on.create({ ...rsaPrivate, SIGN: true })),
    ),
  ),
  rule(
    'an HMAC key shorter than its hash',
    'mechanisms 2.20',
    createHmac('sha256', 'Jefe').update(data).digest('hex'),
    (on) => {
      try {
        return on.sign({ mechanism: CKM.SHA256_HMAC }, on.generic(Buffer.from('Jefe')), data).toString('hex');
      } catch (error) {
        return rvOf(() => {
          throw error;
        });
      }
    },
  ),
  rule(
    'a public key signs nothing, a private key verifies nothing',
    '5.11, 5.12',
    ['CKR_KEY_FUNCTION_NOT_PERMITTED', 'CKR_KEY_FUNCTION_NOT_PERMITTED'],
    (on) => {
      const { publicKey, privateKey } = rsaPair(on, 'session');
      const mechanism = { mechanism: CKM.SHA256_RSA_PKCS };
      return [
        rvOf(() => on.pkcs11.C_SignInit(on.session, mechanism, publicKey)),
        rvOf(() => on.pkcs11.C_VerifyInit(on.session, mechanism, privateKey)),
      ];
    },
  ),
  rule('a type of key that belongs to one hash', 'mechanisms 2.20', 'CKR_OK', (on) =>
    rvOf(() => {
      const key = on.create({ CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.SHA256_HMAC, VALUE: secret, SIGN: true });
      on.sign({ mechanism: CKM.SHA256_HMAC }, key, data);
    }),
  ),
];

/**
 * CMAC of nothing but node's ciphers would be a second implementation; the published example is
 * enough.
 */
export const signatureRules: readonly Rule[] = [...macRules, ...rsaRules, ...curveRules, ...stateRules];
