// Objects of every class with every attribute, found, copied, changed and destroyed: PKCS#11 2.40,
// chapter 4 and section 5.7.
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import type { AttributeName } from '../../../provider/schema/attributes.ts';
import { CKC, CKK, CKO } from '../../../provider/schema/constants.ts';
import { type Bench, p256, type Rule, rule, rvOf, type Seen, template, type Wanted } from './bench.ts';

const nowhere = Buffer.from('efbeadde00000000', 'hex');
const base64 = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url');

const rsaKey = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
export const rsaParts = (key: KeyObject) => {
  const { n, e, d, p, q, dp, dq, qi } = key.export({ format: 'jwk' });
  return {
    public: { MODULUS: base64(n), PUBLIC_EXPONENT: base64(e) },
    private: {
      MODULUS: base64(n),
      PUBLIC_EXPONENT: base64(e),
      PRIVATE_EXPONENT: base64(d),
      PRIME_1: base64(p),
      PRIME_2: base64(q),
      EXPONENT_1: base64(dp),
      EXPONENT_2: base64(dq),
      COEFFICIENT: base64(qi),
    },
  } satisfies Record<string, Wanted>;
};
const ecParts = (key: KeyObject) => {
  const { x, y, d } = key.export({ format: 'jwk' });
  const point = Buffer.concat([Buffer.of(4, 0x41, 4), base64(x), base64(y)]);
  return {
    public: { EC_PARAMS: p256, EC_POINT: point },
    private: { EC_PARAMS: p256, VALUE: base64(d) },
  } satisfies Record<string, Wanted>;
};
/** A private key of others with all its numbers. */
export const importedRsa = createPrivateKey(rsaKey.privateKey.export({ format: 'pem', type: 'pkcs8' }));
export const rsaPrivate: Wanted = { CLASS: CKO.PRIVATE_KEY, KEY_TYPE: CKK.RSA, ...rsaParts(importedRsa).private };
export const rsaPublic: Wanted = { CLASS: CKO.PUBLIC_KEY, KEY_TYPE: CKK.RSA, ...rsaParts(importedRsa).public };
export const importedEc = ecKey.privateKey;
export const ecPrivate: Wanted = { CLASS: CKO.PRIVATE_KEY, KEY_TYPE: CKK.EC, ...ecParts(importedEc).private };
export const ecPublic: Wanted = { CLASS: CKO.PUBLIC_KEY, KEY_TYPE: CKK.EC, ...ecParts(importedEc).public };

const aesValue = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex');
const subject = Buffer.from('300d310b300906035504061302444b', 'hex');
const certificate = Buffer.from('3003020105', 'hex');

/** The template of an object of each kind, with only the required attributes. */
const least: Readonly<Record<string, Wanted>> = {
  'a data object': { CLASS: CKO.DATA, VALUE: Buffer.from('data') },
  'an X.509 certificate': { CLASS: CKO.CERTIFICATE, CERTIFICATE_TYPE: CKC.X_509, SUBJECT: subject, VALUE: certificate },
  'an RSA public key': rsaPublic,
  'an RSA private key': rsaPrivate,
  'an EC public key': ecPublic,
  'an EC private key': ecPrivate,
  'an AES key': { CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.AES, VALUE: aesValue },
  'a generic secret': { CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.GENERIC_SECRET, VALUE: aesValue },
};

const hexOf = (value: unknown): string => (value as Buffer).toString('hex');
const storage: Partial<Record<AttributeName, Seen>> = {
  TOKEN: false,
  MODIFIABLE: true,
  COPYABLE: true,
  DESTROYABLE: true,
  LABEL: '',
};
/** Without CKA_START_DATE and CKA_END_DATE: pkcs11js reads no empty date. */
const keyAttributes: Partial<Record<AttributeName, Seen>> = {
  ...storage,
  ID: '',
  LOCAL: false,
  KEY_GEN_MECHANISM: 'unavailable',
};
const secretAttributes: Partial<Record<AttributeName, Seen>> = {
  ...keyAttributes,
  PRIVATE: true,
  ALWAYS_SENSITIVE: false,
  NEVER_EXTRACTABLE: false,
  SENSITIVE: true,
  WRAP_WITH_TRUSTED: false,
};

/**
 * The attributes of such an object for which the standard has a default, or whose value follows.
 */
const attributesOf: Readonly<Record<string, Partial<Record<AttributeName, Seen>>>> = {
  'a data object': { ...storage, CLASS: CKO.DATA, APPLICATION: '', OBJECT_ID: '', VALUE: hexOf(Buffer.from('data')) },
  'an X.509 certificate': {
    ...storage,
    CLASS: CKO.CERTIFICATE,
    CERTIFICATE_TYPE: CKC.X_509,
    SUBJECT: hexOf(subject),
    VALUE: hexOf(certificate),
    TRUSTED: false,
    CERTIFICATE_CATEGORY: 0,
    ID: '',
    ISSUER: '',
    SERIAL_NUMBER: '',
    URL: '',
    HASH_OF_SUBJECT_PUBLIC_KEY: '',
    HASH_OF_ISSUER_PUBLIC_KEY: '',
    JAVA_MIDP_SECURITY_DOMAIN: 0,
  },
  'an RSA public key': {
    ...keyAttributes,
    CLASS: CKO.PUBLIC_KEY,
    KEY_TYPE: CKK.RSA,
    SUBJECT: '',
    MODULUS: hexOf(rsaPublic.MODULUS),
    MODULUS_BITS: 2048,
    PUBLIC_EXPONENT: '010001',
    TRUSTED: false,
    ENCRYPT: true,
    VERIFY: true,
    WRAP: true,
  },
  'an RSA private key': {
    ...secretAttributes,
    CLASS: CKO.PRIVATE_KEY,
    KEY_TYPE: CKK.RSA,
    SUBJECT: '',
    MODULUS: hexOf(rsaPublic.MODULUS),
    PUBLIC_EXPONENT: '010001',
    PRIVATE_EXPONENT: 'CKR_ATTRIBUTE_SENSITIVE',
    PRIME_1: 'CKR_ATTRIBUTE_SENSITIVE',
    PRIME_2: 'CKR_ATTRIBUTE_SENSITIVE',
    EXPONENT_1: 'CKR_ATTRIBUTE_SENSITIVE',
    EXPONENT_2: 'CKR_ATTRIBUTE_SENSITIVE',
    COEFFICIENT: 'CKR_ATTRIBUTE_SENSITIVE',
    ALWAYS_AUTHENTICATE: false,
    SIGN: true,
    DECRYPT: true,
    UNWRAP: true,
  },
  'an EC public key': {
    ...keyAttributes,
    CLASS: CKO.PUBLIC_KEY,
    KEY_TYPE: CKK.EC,
    EC_PARAMS: hexOf(p256),
    EC_POINT: hexOf(ecPublic.EC_POINT),
    VERIFY: true,
  },
  'an EC private key': {
    ...secretAttributes,
    CLASS: CKO.PRIVATE_KEY,
    KEY_TYPE: CKK.EC,
    EC_PARAMS: hexOf(p256),
    VALUE: 'CKR_ATTRIBUTE_SENSITIVE',
    SIGN: true,
  },
  'an AES key': {
    ...secretAttributes,
    CLASS: CKO.SECRET_KEY,
    KEY_TYPE: CKK.AES,
    VALUE: 'CKR_ATTRIBUTE_SENSITIVE',
    VALUE_LEN: 16,
    CHECK_VALUE: '7df76b',
    TRUSTED: false,
    ENCRYPT: true,
    DECRYPT: true,
    WRAP: true,
    UNWRAP: true,
    SIGN: true,
    VERIFY: true,
  },
  'a generic secret': {
    ...secretAttributes,
    CLASS: CKO.SECRET_KEY,
    KEY_TYPE: CKK.GENERIC_SECRET,
    VALUE: 'CKR_ATTRIBUTE_SENSITIVE',
    VALUE_LEN: 16,
    SIGN: true,
    VERIFY: true,
  },
};

const attributeRules: readonly Rule[] = Object.entries(attributesOf).flatMap(([kind, row]) => {
  return (Object.entries(row) as [AttributeName, Seen][]).map(
    ([name, expected]): Rule =>
      rule(`${kind}: CKA_${name}`, '4', expected, (on) => on.read(on.create(least[kind] ?? {}), name)),
  );
});

/** An invalid template, with its name. */
const refused: readonly (readonly [string, Wanted, string])[] = [
  ['nothing', {}, 'CKR_TEMPLATE_INCOMPLETE'],
  ['no class', { VALUE: Buffer.of(1) }, 'CKR_TEMPLATE_INCOMPLETE'],
  ['a key without a type', { CLASS: CKO.SECRET_KEY, VALUE: aesValue }, 'CKR_TEMPLATE_INCOMPLETE'],
  ['an AES key without a value', { CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.AES }, 'CKR_TEMPLATE_INCOMPLETE'],
  [
    'an AES key of 15 bytes',
    { CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.AES, VALUE: aesValue.subarray(1) },
    'CKR_ATTRIBUTE_VALUE_INVALID',
  ],
  ['a class that does not exist', { CLASS: 0x7fff_0000, VALUE: Buffer.of(1) }, 'CKR_ATTRIBUTE_VALUE_INVALID'],
  [
    'a key of a type that does not exist',
    { CLASS: CKO.SECRET_KEY, KEY_TYPE: 0x7fff_0000, VALUE: aesValue },
    'CKR_ATTRIBUTE_VALUE_INVALID',
  ],
  [
    'an attribute that is no such object’s',
    { CLASS: CKO.DATA, VALUE: Buffer.of(1), MODULUS: Buffer.of(1) },
    'CKR_TEMPLATE_INCONSISTENT',
  ],
  ['a key that says it is local', { ...least['an AES key'], LOCAL: true }, 'CKR_ATTRIBUTE_READ_ONLY'],
  [
    'a key that says it was always sensitive',
    { ...least['an AES key'], ALWAYS_SENSITIVE: true },
    'CKR_ATTRIBUTE_READ_ONLY',
  ],
  [
    'a key that says it was never extractable',
    { ...least['an AES key'], NEVER_EXTRACTABLE: true },
    'CKR_ATTRIBUTE_READ_ONLY',
  ],
  ['a boolean of two bytes', { ...least['an AES key'], ENCRYPT: Buffer.of(1, 1) }, 'CKR_ATTRIBUTE_VALUE_INVALID'],
  ['a class of one byte', { CLASS: Buffer.of(4), KEY_TYPE: CKK.AES, VALUE: aesValue }, 'CKR_ATTRIBUTE_VALUE_INVALID'],
  ['a trusted key, by the user', { ...least['an AES key'], TRUSTED: true }, 'CKR_ATTRIBUTE_READ_ONLY'],
  [
    'an RSA public key without an exponent',
    { CLASS: CKO.PUBLIC_KEY, KEY_TYPE: CKK.RSA, MODULUS: rsaPublic.MODULUS },
    'CKR_TEMPLATE_INCOMPLETE',
  ],
  [
    'an EC public key without a point',
    { CLASS: CKO.PUBLIC_KEY, KEY_TYPE: CKK.EC, EC_PARAMS: p256 },
    'CKR_TEMPLATE_INCOMPLETE',
  ],
  [
    'a certificate without a subject',
    { CLASS: CKO.CERTIFICATE, CERTIFICATE_TYPE: CKC.X_509, VALUE: certificate },
    'CKR_TEMPLATE_INCOMPLETE',
  ],
];

const note = (on: Bench, wanted: Wanted = {}): Buffer =>
  on.create({ CLASS: CKO.DATA, VALUE: Buffer.from('note'), PRIVATE: false, ...wanted });
const key = (on: Bench, wanted: Wanted = {}): Buffer =>
  on.aes(aesValue, { SENSITIVE: true, EXTRACTABLE: false, ...wanted });

/** Two keys from one template: what happens to each. */
const twins = (on: Bench, wanted: Wanted): string[] => {
  const made: Buffer[] = [];
  const seen = [0, 1].map(() => rvOf(() => made.push(on.generate(wanted))));
  for (const each of made) on.pkcs11.C_DestroyObject(on.session, each);
  return seen;
};

/**
 * A key with the label of a database's master key: whether it is on the token, or why there is
 * none.
 */
const masterKey = (on: Bench, wanted: Wanted): Seen => {
  let made: Buffer | undefined;
  const seen = rvOf(() => (made = on.generate({ LABEL: `ORACLE.TDE.HSM.MK.06${'7'.repeat(32)}`, ...wanted })));
  if (made === undefined) return seen;
  const onToken = on.read(made, 'TOKEN');
  on.pkcs11.C_DestroyObject(on.session, made);
  return onToken;
};

/** C_SetAttributeValue and C_CopyObject on a key, with the result of each. */
const changed: readonly (readonly [string, Wanted, Wanted, string, string])[] = [
  ['the label', {}, { LABEL: 'new' }, 'CKR_OK', 'CKR_OK'],
  ['the id', {}, { ID: Buffer.of(9) }, 'CKR_OK', 'CKR_OK'],
  ['a use, off', {}, { ENCRYPT: false }, 'CKR_OK', 'CKR_OK'],
  ['sensitive, to true', { SENSITIVE: false }, { SENSITIVE: true }, 'CKR_OK', 'CKR_OK'],
  ['sensitive, to false', {}, { SENSITIVE: false }, 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
  ['extractable, to false', { EXTRACTABLE: true }, { EXTRACTABLE: false }, 'CKR_OK', 'CKR_OK'],
  ['extractable, to true', {}, { EXTRACTABLE: true }, 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
  ['the class', {}, { CLASS: CKO.DATA }, 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
  ['the key type', {}, { KEY_TYPE: CKK.GENERIC_SECRET }, 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
  ['the value', {}, { VALUE: Buffer.alloc(16) }, 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
  ['local', {}, { LOCAL: true }, 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
  [
    'an attribute that is not a key’s',
    {},
    { APPLICATION: 'x' },
    'CKR_TEMPLATE_INCONSISTENT',
    'CKR_TEMPLATE_INCONSISTENT',
  ],
  ['the label of what is not modifiable', { MODIFIABLE: false }, { LABEL: 'new' }, 'CKR_ACTION_PROHIBITED', 'CKR_OK'],
  ['the label of what is not copyable', { COPYABLE: false }, { LABEL: 'new' }, 'CKR_OK', 'CKR_ACTION_PROHIBITED'],
];

/**
 * Changes of attributes that protect a key of the token: the protection is raised, never lowered.
 */
const protectedOnToken: readonly (readonly [string, Wanted, Wanted, string])[] = [
  ['sensitive, to true', { SENSITIVE: false, EXTRACTABLE: true }, { SENSITIVE: true }, 'CKR_OK'],
  ['sensitive, to false', {}, { SENSITIVE: false }, 'CKR_ATTRIBUTE_READ_ONLY'],
  ['extractable, to false', { SENSITIVE: false, EXTRACTABLE: true }, { EXTRACTABLE: false }, 'CKR_OK'],
  ['extractable, to true', {}, { EXTRACTABLE: true }, 'CKR_ATTRIBUTE_READ_ONLY'],
];
const onToken = (wanted: Wanted): Wanted => ({ ...wanted, TOKEN: true, LABEL: `changed ${Math.random()}` });

export const objectRules: readonly Rule[] = [
  ...attributeRules,
  ...refused.map(
    ([what, wanted, expected]): Rule =>
      rule(`C_CreateObject: ${what}`, '4.1', expected, ({ create }) => rvOf(() => create(wanted))),
  ),
  ...changed.flatMap(([what, own, wanted, set, copied]): Rule[] => [
    rule(`C_SetAttributeValue: ${what}`, '5.7', set, (on) =>
      rvOf(() => on.pkcs11.C_SetAttributeValue(on.session, key(on, own), template(wanted))),
    ),
    rule(`C_CopyObject: ${what}`, '5.7', copied, (on) =>
      rvOf(() => on.pkcs11.C_CopyObject(on.session, key(on, own), template(wanted))),
    ),
  ]),
  ...protectedOnToken.flatMap(([what, own, wanted, expected]): Rule[] => [
    rule(`C_SetAttributeValue of a key of the token: ${what}`, '5.7', expected, (on) => {
      const object = key(on, onToken(own));
      const rv = rvOf(() => on.pkcs11.C_SetAttributeValue(on.session, object, template(wanted)));
      on.pkcs11.C_DestroyObject(on.session, object);
      return rv;
    }),
    rule(`C_CopyObject of a key of the token: ${what}`, '5.7', expected, (on) => {
      const made = [key(on, onToken(own))];
      const copy = template(onToken(wanted));
      const rv = rvOf(() => made.push(on.pkcs11.C_CopyObject(on.session, made[0] as Buffer, copy)));
      for (const each of made) on.pkcs11.C_DestroyObject(on.session, each);
      return rv;
    }),
  ]),
  rule('a sensitive key of the token is copied', '5.7', 'CKR_OK', (on) => {
    const made = [key(on, onToken({}))];
    const copy = template(onToken({}));
    const rv = rvOf(() => made.push(on.pkcs11.C_CopyObject(on.session, made[0] as Buffer, copy)));
    for (const each of made) on.pkcs11.C_DestroyObject(on.session, each);
    return rv;
  }),
  rule(
    'a copy on the token of a key of the session says what its source always and never was',
    '5.7',
    { always: true, never: true },
    (on) => {
      const made = [on.generate({ SENSITIVE: true, EXTRACTABLE: false })];
      const copy = on.pkcs11.C_CopyObject(on.session, made[0] as Buffer, template(onToken({})));
      made.push(copy);
      const seen = { always: on.read(copy, 'ALWAYS_SENSITIVE'), never: on.read(copy, 'NEVER_EXTRACTABLE') };
      for (const each of made) on.pkcs11.C_DestroyObject(on.session, each);
      return seen;
    },
  ),
  rule(
    'a key of the token that was made readable, protected later: what it always and never was',
    '4.10',
    { sensitive: true, always: false, extractable: false, never: false },
    (on) => {
      const object = on.generate(onToken({ SENSITIVE: false, EXTRACTABLE: true }));
      on.pkcs11.C_SetAttributeValue(on.session, object, template({ SENSITIVE: true, EXTRACTABLE: false }));
      const seen = {
        sensitive: on.read(object, 'SENSITIVE'),
        always: on.read(object, 'ALWAYS_SENSITIVE'),
        extractable: on.read(object, 'EXTRACTABLE'),
        never: on.read(object, 'NEVER_EXTRACTABLE'),
      };
      on.pkcs11.C_DestroyObject(on.session, object);
      return seen;
    },
  ),
  rule(
    'a copy is like its source but for what the template changes',
    '5.7',
    { label: hexOf(Buffer.from('copy')), sensitive: true, length: 16, local: false },
    (on) => {
      const copy = on.pkcs11.C_CopyObject(on.session, key(on), template({ LABEL: 'copy' }));
      return {
        label: on.read(copy, 'LABEL'),
        sensitive: on.read(copy, 'SENSITIVE'),
        length: on.read(copy, 'VALUE_LEN'),
        local: on.read(copy, 'LOCAL'),
      };
    },
  ),
  rule('a change is seen at once', '5.7', hexOf(Buffer.from('second')), (on) => {
    const object = note(on, { LABEL: 'first' });
    on.pkcs11.C_SetAttributeValue(on.session, object, template({ LABEL: 'second' }));
    return on.read(object, 'LABEL');
  }),
  ...(['session', 'token'] as const).map(
    (place): Rule =>
      rule(
        `a key of the ${place} becomes sensitive, and not extractable, and stays so`,
        '4.10',
        ['CKR_OK', 'CKR_OK', 'CKR_ATTRIBUTE_READ_ONLY', 'CKR_ATTRIBUTE_READ_ONLY'],
        (on) => {
          const wanted = place === 'token' ? { TOKEN: true, LABEL: `sticky ${Math.random()}` } : {};
          const key = on.aes(aesValue, { ...wanted, SENSITIVE: false, EXTRACTABLE: true });
          return [{ SENSITIVE: true }, { EXTRACTABLE: false }, { SENSITIVE: false }, { EXTRACTABLE: true }].map(
            (change) => rvOf(() => on.pkcs11.C_SetAttributeValue(on.session, key, template(change))),
          );
        },
      ),
  ),
  rule('a value that may be read is read', '5.7', hexOf(aesValue), (on) => on.read(on.aes(aesValue), 'VALUE')),
  rule('a value that is not sensitive, yet not extractable', '4.10', 'CKR_ATTRIBUTE_SENSITIVE', (on) =>
    on.read(on.aes(aesValue, { EXTRACTABLE: false }), 'VALUE'),
  ),
  rule('C_GetAttributeValue of an attribute that is no such object’s', '5.7', 'CKR_ATTRIBUTE_TYPE_INVALID', (on) =>
    on.read(note(on), 'MODULUS'),
  ),
  rule('C_GetAttributeValue of no object', '5.7', 'CKR_OBJECT_HANDLE_INVALID', (on) => on.read(nowhere, 'LABEL')),
  rule('C_GetObjectSize of an object', '5.7', 'CKR_OK', (on) =>
    rvOf(() => on.pkcs11.C_GetObjectSize(on.session, note(on))),
  ),
  rule('C_GetObjectSize of no object', '5.7', 'CKR_OBJECT_HANDLE_INVALID', (on) =>
    rvOf(() => on.pkcs11.C_GetObjectSize(on.session, nowhere)),
  ),
  rule('C_DestroyObject twice', '5.7', ['CKR_OK', 'CKR_OBJECT_HANDLE_INVALID'], (on) => {
    const object = note(on);
    return [0, 1].map(() => rvOf(() => on.pkcs11.C_DestroyObject(on.session, object)));
  }),
  rule('C_DestroyObject of what is not destroyable', '5.7', 'CKR_ACTION_PROHIBITED', (on) => {
    const object = note(on, { DESTROYABLE: false });
    return rvOf(() => on.pkcs11.C_DestroyObject(on.session, object));
  }),
  rule('a read-only session makes session objects', '5.7', 'CKR_OK', (on) => {
    const session = on.open(false);
    const rv = rvOf(() => on.create({ CLASS: CKO.DATA, VALUE: Buffer.of(1) }, session));
    on.pkcs11.C_CloseSession(session);
    return rv;
  }),
  rule('a read-only session makes no object of the token', '5.7', 'CKR_SESSION_READ_ONLY', (on) => {
    const session = on.open(false);
    const rv = rvOf(() => on.create({ CLASS: CKO.DATA, VALUE: Buffer.of(1), TOKEN: true }, session));
    on.pkcs11.C_CloseSession(session);
    return rv;
  }),
  rule('a read-only session destroys no object of the token', '5.7', ['CKR_SESSION_READ_ONLY', 'CKR_OK'], (on) => {
    const object = note(on, { TOKEN: true, LABEL: 'read-only' });
    const session = on.open(false);
    const rv = rvOf(() => on.pkcs11.C_DestroyObject(session, object));
    on.pkcs11.C_CloseSession(session);
    return [rv, rvOf(() => on.pkcs11.C_DestroyObject(on.session, object))];
  }),
  rule('another session of the application sees a session object, until its session is closed', '5.6', [1, 0], (on) => {
    const session = on.open();
    on.create({ CLASS: CKO.DATA, VALUE: Buffer.of(1), LABEL: 'of another session' }, session);
    const during = on.find({ LABEL: 'of another session' }).length;
    on.pkcs11.C_CloseSession(session);
    return [during, on.find({ LABEL: 'of another session' }).length];
  }),
  rule(
    'C_FindObjects finds by every attribute that is given, and by all of them',
    '5.7',
    { label: 3, id: 2, both: 1, class: 1, none: 0 },
    (on) => {
      key(on, { LABEL: 'find me', ID: Buffer.from('one') });
      key(on, { LABEL: 'find me', ID: Buffer.from('two') });
      note(on, { LABEL: 'find me' });
      key(on, { LABEL: 'other', ID: Buffer.from('one') });
      return {
        label: on.find({ LABEL: 'find me' }).length,
        id: on.find({ ID: Buffer.from('one') }).length,
        both: on.find({ LABEL: 'find me', ID: Buffer.from('one') }).length,
        class: on.find({ LABEL: 'find me', CLASS: CKO.DATA }).length,
        none: on.find({ LABEL: 'find' }).length,
      };
    },
  ),
  ...(['session', 'token'] as const).map(
    (place): Rule =>
      rule(
        `C_FindObjects finds a certificate and a data object of the ${place} by the value`,
        '5.7',
        [1, 1, 0],
        (on) => {
          const value = randomBytes(600);
          const TOKEN = place === 'token';
          const made = [
            note(on, { TOKEN, VALUE: value }),
            on.create({ ...least['an X.509 certificate'], VALUE: value, TOKEN }),
          ];
          const counts = [
            on.find({ VALUE: value, CLASS: CKO.DATA }).length,
            on.find({ CLASS: CKO.CERTIFICATE, VALUE: value }).length,
            on.find({ CLASS: CKO.CERTIFICATE, VALUE: value.subarray(1) }).length,
          ];
          for (const each of made) on.pkcs11.C_DestroyObject(on.session, each);
          return counts;
        },
      ),
  ),
  rule(
    'C_FindObjects gives each object once, however many are asked for at a time',
    '5.7',
    { counts: [4, 4, 2, 0], different: 10 },
    (on) => {
      for (let each = 0; each < 10; each++) note(on, { LABEL: 'ten' });
      on.pkcs11.C_FindObjectsInit(on.session, template({ LABEL: 'ten' }));
      const batches = [0, 1, 2, 3].map(() => on.pkcs11.C_FindObjects(on.session, 4));
      on.pkcs11.C_FindObjectsFinal(on.session);
      return {
        counts: batches.map((batch) => batch.length),
        different: new Set(batches.flat().map((handle) => handle.toString('hex'))).size,
      };
    },
  ),
  rule('a search knows what was there when it began', '5.7', 'CKR_OK', (on) => {
    const object = note(on, { LABEL: 'goes meanwhile' });
    on.pkcs11.C_FindObjectsInit(on.session, template({ LABEL: 'goes meanwhile' }));
    on.pkcs11.C_DestroyObject(on.session, object);
    const rv = rvOf(() => on.pkcs11.C_FindObjects(on.session, 5));
    on.pkcs11.C_FindObjectsFinal(on.session);
    return rv;
  }),
  rule(
    'C_FindObjects without C_FindObjectsInit',
    '5.7',
    ['CKR_OPERATION_NOT_INITIALIZED', 'CKR_OPERATION_NOT_INITIALIZED'],
    ({ pkcs11, session }) => [
      rvOf(() => pkcs11.C_FindObjects(session, 1)),
      rvOf(() => pkcs11.C_FindObjectsFinal(session)),
    ],
  ),
  rule('C_FindObjectsInit twice', '5.7', ['CKR_OK', 'CKR_OPERATION_ACTIVE', 'CKR_OK'], ({ pkcs11, session }) => [
    rvOf(() => pkcs11.C_FindObjectsInit(session, [])),
    rvOf(() => pkcs11.C_FindObjectsInit(session, [])),
    rvOf(() => pkcs11.C_FindObjectsFinal(session)),
  ]),
  rule(
    'a data object of the token keeps its attributes and takes new ones',
    '4.5',
    {
      value: hexOf(Buffer.from('kept')),
      application: hexOf(Buffer.from('app')),
      label: hexOf(Buffer.from('new')),
    },
    (on) => {
      const wanted = { TOKEN: true, LABEL: 'old', APPLICATION: 'app', VALUE: Buffer.from('kept') };
      const object = note(on, wanted);
      on.pkcs11.C_SetAttributeValue(on.session, object, template({ LABEL: 'new' }));
      const seen = {
        value: on.read(object, 'VALUE'),
        application: on.read(object, 'APPLICATION'),
        label: on.read(object, 'LABEL'),
      };
      on.pkcs11.C_DestroyObject(on.session, object);
      return seen;
    },
  ),
  rule('the value of a data object that is modifiable is changed', '4.5', hexOf(Buffer.from('new')), (on) => {
    const object = note(on, { TOKEN: true, MODIFIABLE: true, VALUE: Buffer.from('old') });
    on.pkcs11.C_SetAttributeValue(on.session, object, template({ VALUE: Buffer.from('new') }));
    const value = on.read(object, 'VALUE');
    on.pkcs11.C_DestroyObject(on.session, object);
    return value;
  }),
  rule('two keys of the token with one label', '4.4', ['CKR_OK', 'CKR_OK'], (on) =>
    twins(on, { TOKEN: true, LABEL: 'twin' }),
  ),
  rule('two secret keys of the token that are not modifiable with one label', '4.4', ['CKR_OK', 'CKR_OK'], (on) =>
    twins(on, { TOKEN: true, LABEL: 'fixed twin', MODIFIABLE: false }),
  ),
  rule('the master key of a database that names no CKA_TOKEN is on the token', '4.4', false, (on) => masterKey(on, {})),
  rule('the master key of a database with CKA_TOKEN false', '4.4', false, (on) => masterKey(on, { TOKEN: false })),
  rule('a sensitive key of a session is copied to the token', '5.7', 'CKR_OK', (on) =>
    rvOf(() => on.pkcs11.C_CopyObject(on.session, key(on), template({ TOKEN: true, LABEL: 'copied up' }))),
  ),
  rule('an object of the token is left for the end', '4.4', 'CKR_OK', (on) =>
    rvOf(() => note(on, { TOKEN: true, LABEL: 'outlives C_Finalize' })),
  ),
];
