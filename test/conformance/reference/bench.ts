// What the rules of this folder work with: one library, loaded in the test's own process, a
// logged-in read-write session, and short names for the calls of every rule. A rule returns its
// observations as plain data, so that one assertion compares them.

import { Module, type Session } from 'graphene-pk11';
import pkcs11js from 'pkcs11js';
import { type AttributeName, attributeKind, attributes, CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { findAll, grapheneCalls, type Ways } from '../../support/graphene-calls.ts';
import { rvOf } from '../../support/pkcs11-host.ts';
import type { Token } from '../../support/token.ts';

/** What a rule may see; return values are their names, bytes are hexadecimal. */
export type Seen = string | number | boolean | null | readonly Seen[] | { readonly [name: string]: Seen };

export interface Rule {
  /** Unique; the table of differences names rules by it. */
  readonly name: string;
  /**
   * Where PKCS#11 2.40 states the rule: a section of the base specification, or "mechanisms" and a
   * section of that document.
   */
  readonly section: string;
  /** The result according to the standard. */
  readonly expected: Seen;
  readonly look: (on: Bench) => Seen | Promise<Seen>;
}

export const rule = (name: string, section: string, expected: Seen, look: Rule['look']): Rule => ({
  name,
  section,
  expected,
  look,
});

type Value = number | boolean | string | Buffer;
export type Wanted = Partial<Record<AttributeName, Value | undefined>>;

/** A template as pkcs11js takes it, from the names without `CKA_`. */
export const template = (wanted: Wanted): pkcs11js.Template =>
  Object.entries(wanted).flatMap(([name, value]) =>
    value === undefined ? [] : [{ type: attributes[name as AttributeName].type, value }],
  );

/** A mechanism whose parameter is a structure that pkcs11js supports. */
export const mechanismOf = <Parameter extends pkcs11js.IParams>(
  mechanism: number,
  parameter: Parameter,
): pkcs11js.Mechanism => ({
  mechanism,
  parameter,
});

export interface Pair {
  readonly publicKey: Buffer;
  readonly privateKey: Buffer;
}

export interface Bench {
  readonly token: Token;
  /**
   * Driven by graphene-pk11 where it can express the call, unless the bench was opened for
   * pkcs11js.
   */
  readonly pkcs11: pkcs11js.PKCS11;
  readonly ways: Ways;
  readonly slot: Buffer;
  /** Read-write, the user logged in. */
  readonly session: Buffer;
  /** The library of `pkcs11`, driven through graphene-pk11. */
  readonly graphene: { readonly module: Module; readonly session: Session };
  open(readWrite?: boolean): Buffer;
  /** C_CreateObject. */
  create(wanted: Wanted, session?: Buffer): Buffer;
  /** A session key whose value can be read by default. */
  aes(value: Buffer, wanted?: Wanted): Buffer;
  generic(value: Buffer, wanted?: Wanted): Buffer;
  generate(wanted?: Wanted, mechanism?: number): Buffer;
  rsaPair(publicWanted?: Wanted, privateWanted?: Wanted): Pair;
  ecPair(parameters: Buffer, publicWanted?: Wanted, privateWanted?: Wanted): Pair;
  /** One attribute, or the name of the refusal. */
  read(object: Buffer, name: AttributeName): Seen;
  value(object: Buffer, name: AttributeName): Buffer;
  find(wanted: Wanted, session?: Buffer): Buffer[];
  encrypt(mechanism: pkcs11js.Mechanism, key: Buffer, data: Buffer): Buffer;
  decrypt(mechanism: pkcs11js.Mechanism, key: Buffer, data: Buffer): Buffer;
  sign(mechanism: pkcs11js.Mechanism, key: Buffer, data: Buffer): Buffer;
  /** The return value's name. */
  verify(mechanism: pkcs11js.Mechanism, key: Buffer, data: Buffer, signature: Buffer): string;
  /**
   * Runs `look` on a bench with its own read-write session, which is closed after the rule together
   * with its objects.
   */
  apart<Answer>(look: (on: Bench) => Answer | Promise<Answer>): Promise<Answer>;
  end(): void;
}

export const readable: Wanted = { SENSITIVE: false, EXTRACTABLE: true };
export const p256 = Buffer.from('06082a8648ce3d030107', 'hex');
/** The printable name of the curve as SunPKCS11 and NSS do not, but SoftHSM2 does name it. */
export const ed25519 = Buffer.from('130c656477617264733235353139', 'hex');

const shown = (name: AttributeName, value: Buffer | undefined): Seen => {
  if (value === undefined) return null;
  const kind = attributeKind(attributes[name].type);
  if (kind === 'boolean' || kind === 'byteBoolean') return value[0] === 1;
  // CK_UNAVAILABLE_INFORMATION is not a number that JavaScript holds.
  if (kind === 'ulong') return value.every((byte) => byte === 0xff) ? 'unavailable' : Number(value.readBigUInt64LE());
  return value.toString('hex');
};

export const openBench = (token: Token, driver: 'graphene' | 'pkcs11js' = 'pkcs11js'): Bench => {
  Object.assign(process.env, token.environment);
  const own = new pkcs11js.PKCS11();
  own.load(token.module);
  const { pkcs11, ways } = driver === 'graphene' ? grapheneCalls(own) : { pkcs11: own, ways: new Map() };
  // p11-kit insists on the locks of the system.
  pkcs11.C_Initialize({ flags: pkcs11js.CKF_OS_LOCKING_OK });
  const [slot] = pkcs11.C_GetSlotList(true);
  if (slot === undefined) throw new Error('no slot');
  const flags = pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION;
  const open = (readWrite = true): Buffer =>
    pkcs11.C_OpenSession(slot, readWrite ? flags : pkcs11js.CKF_SERIAL_SESSION);
  const first = open();
  pkcs11.C_Login(first, pkcs11js.CKU_USER, token.pin);
  const module = new Module(own);
  const graphene = { module, session: module.getSlots(0).open(flags) };
  return benchOf(first, { token, pkcs11, ways, slot, open, graphene });
};

const benchOf = (
  session: Buffer,
  shared: Pick<Bench, 'token' | 'pkcs11' | 'ways' | 'slot' | 'open' | 'graphene'>,
): Bench => {
  const { pkcs11 } = shared;
  const create: Bench['create'] = (wanted, own = session) => pkcs11.C_CreateObject(own, template(wanted));
  const pair = (mechanism: number, publicWanted: Wanted, privateWanted: Wanted): Pair =>
    pkcs11.C_GenerateKeyPair(session, { mechanism }, template(publicWanted), template(privateWanted));
  const value: Bench['value'] = (object, name) => {
    const [row] = pkcs11.C_GetAttributeValue(session, object, [{ type: CKA[name] }]);
    return row?.value as unknown as Buffer;
  };
  return {
    ...shared,
    session,
    create,
    aes: (bytes, wanted = {}) =>
      create({ CLASS: CKO.SECRET_KEY, KEY_TYPE: CKK.AES, VALUE: bytes, ...everyUse, ...readable, ...wanted }),
    generic: (bytes, wanted = {}) =>
      create({
        CLASS: CKO.SECRET_KEY,
        KEY_TYPE: CKK.GENERIC_SECRET,
        VALUE: bytes,
        SIGN: true,
        VERIFY: true,
        ...readable,
        ...wanted,
      }),
    generate: (wanted = {}, mechanism = CKM.AES_KEY_GEN) =>
      pkcs11.C_GenerateKey(session, { mechanism }, template({ VALUE_LEN: 32, ...everyUse, ...wanted })),
    rsaPair: (publicWanted = {}, privateWanted = {}) =>
      pair(
        CKM.RSA_PKCS_KEY_PAIR_GEN,
        {
          MODULUS_BITS: 2048,
          PUBLIC_EXPONENT: Buffer.of(1, 0, 1),
          VERIFY: true,
          ENCRYPT: true,
          WRAP: true,
          ...publicWanted,
        },
        { SIGN: true, DECRYPT: true, UNWRAP: true, ...privateWanted },
      ),
    ecPair: (parameters, publicWanted = {}, privateWanted = {}) =>
      pair(
        parameters.equals(ed25519) ? CKM.EC_EDWARDS_KEY_PAIR_GEN : CKM.EC_KEY_PAIR_GEN,
        { EC_PARAMS: parameters, VERIFY: true, ...publicWanted },
        { SIGN: true, ...privateWanted },
      ),
    read: (object, name) => {
      let seen: Buffer | undefined;
      const rv = rvOf(() => {
        seen = value(object, name);
      });
      return rv === 'CKR_OK' ? shown(name, seen) : rv;
    },
    value,
    find: (wanted, own = session) => findAll(pkcs11, own, template(wanted), 1000),
    encrypt: (mechanism, key, data) => {
      pkcs11.C_EncryptInit(session, mechanism, key);
      return pkcs11.C_Encrypt(session, data, Buffer.alloc(data.length + 1024));
    },
    decrypt: (mechanism, key, data) => {
      pkcs11.C_DecryptInit(session, mechanism, key);
      return pkcs11.C_Decrypt(session, data, Buffer.alloc(data.length + 1024));
    },
    sign: (mechanism, key, data) => {
      pkcs11.C_SignInit(session, mechanism, key);
      return pkcs11.C_Sign(session, data, Buffer.alloc(1024));
    },
    verify: (mechanism, key, data, signature) =>
      rvOf(() => {
        pkcs11.C_VerifyInit(session, mechanism, key);
        pkcs11.C_Verify(session, data, signature);
      }),
    apart: async (look) => {
      const own = shared.open();
      try {
        return await look(benchOf(own, shared));
      } finally {
        rvOf(() => pkcs11.C_CloseSession(own));
      }
    },
    end: () => {
      rvOf(() => pkcs11.C_Finalize());
      pkcs11.close();
    },
  };
};

const everyUse: Wanted = { ENCRYPT: true, DECRYPT: true, SIGN: true, VERIFY: true, WRAP: true, UNWRAP: true };

export { rvOf };
