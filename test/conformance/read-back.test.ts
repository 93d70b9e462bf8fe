// What C_GetAttributeValue returns is acceptable in a template: every attribute of every class of
// object, of the session and of the token, read through the built library and put into
// C_FindObjectsInit, C_SetAttributeValue, C_CopyObject and C_CreateObject (PKCS#11 2.40, sections
// 4.1 and 5.7). An empty list is among them (CKA_ALLOWED_MECHANISMS of a key that allows all).
import { createECDH } from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ObjectKind, ruleFor } from '../../provider/agent/objects/attribute-rules.ts';
import { type AttributeName, attributes, CKA } from '../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../provider/schema/constants.ts';
import { findAll } from '../support/graphene-calls.ts';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';

let host: Pkcs11Host;
let pkcs11: pkcs11js.PKCS11;
let session: Buffer;
beforeAll(async () => {
  host = await startHost();
  ({ pkcs11 } = host);
  session = host.open();
});
afterAll(() => host?.stop());

const p256 = Buffer.from('06082a8648ce3d030107', 'hex');
const der = Buffer.from('300a0c08737562', 'hex');
type Template = pkcs11js.Template;
type Sample = readonly [name: string, kind: ObjectKind, make: (where: Template) => Buffer];

const readable: Template = [
  { type: CKA.SENSITIVE, value: false },
  { type: CKA.EXTRACTABLE, value: true },
];
const create = (...rows: Template[]): Buffer => pkcs11.C_CreateObject(session, rows.flat());
const rsaPair = (where: Template) =>
  pkcs11.C_GenerateKeyPair(
    session,
    { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN },
    [{ type: CKA.MODULUS_BITS, value: 2048 }, ...where],
    [...readable, ...where],
  );
const samples: readonly Sample[] = [
  [
    'data',
    'data',
    (where) =>
      create(
        [
          { type: CKA.CLASS, value: CKO.DATA },
          { type: CKA.VALUE, value: Buffer.from('data') },
        ],
        where,
      ),
  ],
  [
    'a certificate',
    'certificate',
    (where) =>
      create(
        [
          { type: CKA.CLASS, value: CKO.CERTIFICATE },
          { type: CKA.CERTIFICATE_TYPE, value: 0 },
          { type: CKA.SUBJECT, value: der },
          { type: CKA.VALUE, value: der },
        ],
        where,
      ),
  ],
  ['an RSA public key', 'public', (where) => rsaPair(where).publicKey],
  ['an RSA private key', 'private', (where) => rsaPair(where).privateKey],
  [
    'an EC public key',
    'public',
    (where) =>
      create(
        [
          { type: CKA.CLASS, value: CKO.PUBLIC_KEY },
          { type: CKA.KEY_TYPE, value: CKK.EC },
          { type: CKA.EC_PARAMS, value: p256 },
          { type: CKA.EC_POINT, value: createECDH('prime256v1').generateKeys() },
        ],
        where,
      ),
  ],
  [
    'an EC private key',
    'private',
    (where) => {
      const pair = createECDH('prime256v1');
      pair.generateKeys();
      return create(
        [
          { type: CKA.CLASS, value: CKO.PRIVATE_KEY },
          { type: CKA.KEY_TYPE, value: CKK.EC },
          { type: CKA.EC_PARAMS, value: p256 },
          { type: CKA.VALUE, value: Buffer.concat([Buffer.alloc(32), pair.getPrivateKey()]).subarray(-32) },
        ],
        readable,
        where,
      );
    },
  ],
  [
    'an AES key',
    'secret',
    (where) =>
      pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
        { type: CKA.VALUE_LEN, value: 32 },
        ...readable,
        ...where,
      ]),
  ],
  [
    'a generic secret',
    'secret',
    (where) =>
      create(
        [
          { type: CKA.CLASS, value: CKO.SECRET_KEY },
          { type: CKA.KEY_TYPE, value: CKK.GENERIC_SECRET },
          { type: CKA.VALUE, value: Buffer.alloc(20, 1) },
        ],
        readable,
        where,
      ),
  ],
];

type Read = readonly [name: AttributeName, type: number, value: Buffer];
/** Every attribute that the object has. */
const readAll = (object: Buffer): readonly Read[] =>
  (Object.entries(attributes) as [AttributeName, { type: number }][]).flatMap(([name, { type }]): Read[] => {
    try {
      const [row] = pkcs11.C_GetAttributeValue(session, object, [{ type }]);
      return [[name, type, row?.value as Buffer]];
    } catch (error) {
      expect((error as Error).message).toMatch(/CKR_ATTRIBUTE_TYPE_INVALID/);
      return [];
    }
  });

const found = (template: Template): Buffer[] => findAll(pkcs11, session, template);

/** Values that cannot be searched: a search would reveal them. */
const secrets: ReadonlySet<AttributeName> = new Set([
  'VALUE',
  'PRIVATE_EXPONENT',
  'PRIME_1',
  'PRIME_2',
  'EXPONENT_1',
  'EXPONENT_2',
  'COEFFICIENT',
]);

describe.each([
  ['of the session', false],
  ['on the token', true],
] as const)('%s', (_where, token) => {
  test.each(samples)('%s', (_name, kind, make) => {
    // pkcs11js carries no empty dates; test/unit/codec/calls.test.ts has those.
    const date = Buffer.from('20260101');
    const dates = [CKA.START_DATE, CKA.END_DATE].map((type) => ({ type, value: date }));
    const object = make([{ type: CKA.TOKEN, value: token }, ...(kind === 'data' ? [] : dates)]);
    const all = readAll(object);
    const names = all.map(([name]) => name);
    expect(names).toEqual(expect.arrayContaining(['CLASS', 'TOKEN', 'LABEL', 'UNIQUE_ID']));
    const ofKey = kind !== 'data' && kind !== 'certificate';
    expect(names.includes('ALLOWED_MECHANISMS')).toBe(ofKey);
    const readValueOf = (type: number) => all.find(([, each]) => each === type)?.[2] ?? Buffer.alloc(0);
    const keyType = ofKey ? readValueOf(CKA.KEY_TYPE).readUInt8(0) : null;
    const unique = { type: CKA.UNIQUE_ID, value: readValueOf(CKA.UNIQUE_ID) };

    for (const [name, type, value] of all) {
      const rule = ruleFor(kind, keyType, type);
      expect(rule, name).toBeDefined();
      const row = { type, value };
      if (!secrets.has(name) || kind === 'data') expect([name, found([unique, row])]).toEqual([name, [object]]);
      // The present value is a change of nothing; a token may still say that the attribute never
      // changes.
      const allowed = rule?.set === 'never' ? ['CKR_OK', 'CKR_ATTRIBUTE_READ_ONLY'] : ['CKR_OK'];
      expect(allowed, name).toContain(rvOf(() => pkcs11.C_SetAttributeValue(session, object, [row])));
      const elsewhere = name === 'TOKEN' ? [row] : [row, { type: CKA.TOKEN, value: false }];
      expect(allowed, name).toContain(rvOf(() => pkcs11.C_CopyObject(session, object, elsewhere)));
      if (rule?.create === 'read-only') {
        const refusal = rvOf(() => pkcs11.C_CreateObject(session, [...toCreate(all, kind, keyType), row]));
        expect([name, refusal]).toEqual([name, 'CKR_ATTRIBUTE_READ_ONLY']);
      }
    }

    const again = readAll(pkcs11.C_CreateObject(session, toCreate(all, kind, keyType)));
    const given = new Set(toCreate(all, kind, keyType).map(({ type }) => type));
    expect(again.filter(([, type]) => given.has(type))).toEqual(all.filter(([, type]) => given.has(type)));
  });
});

/** The read attributes as a template for C_CreateObject, without those that only the token sets. */
const toCreate = (all: readonly Read[], kind: ObjectKind, keyType: number | null): Template =>
  all
    .filter(([, type]) => ['needed', 'may'].includes(ruleFor(kind, keyType, type)?.create ?? 'never'))
    .map(([, type, value]) => ({ type, value }));
