// A bounded search over sequences of calls for one that brings the value of a sensitive key out
// (security of PKCS#11 key management: Clulow 2003; Delaune, Kremer, Steel 2008; Bortolozzo,
// Centenaro, Focardi, Steel 2010). The caller may do everything but import its own keys: under a
// key with a known value, the standard lets it wrap every extractable key. Keys of the session
// alone, where nothing waits; attack-search-token.test.ts has those of the token.
//
// DKE_TEST_SEQUENCES: how many (100,000).

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CoreError, core } from '../../../addon/core.ts';
import { Application } from '../../../provider/agent/sessions/application.ts';
import { handlers } from '../../../provider/agent/threads/dispatch.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import type { CallName, Input } from '../../../provider/schema/calls.ts';
import { CKD, CKG_IV } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { CryptokiError, type Mechanism } from '../../../provider/schema/types.ts';
import { type InProcessAgent, room, startInProcess } from '../../support/in-process-agent.ts';
import fc from '../../support/property.ts';
import { aesRows, clear, hkdfWith, iv, mech, p256, type Row, wrappings } from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';
import { sizeOf } from '../../support/tiers.ts';

const seed = 20_261_121;
const runs = Number(process.env.DKE_TEST_SEQUENCES ?? sizeOf('attack search'));
/** Bytes that choose a step, and how many steps there are at most. */
const width = 5;
const longest = 10;

const ecb = mech(CKM.AES_ECB);
const gcm = mech(CKM.AES_GCM);
const ciphers: readonly Mechanism[] = [
  ecb,
  ...wrappings.slice(2),
  mech(CKM.AES_CTR, { kind: 'ctr', counterBits: 128, block: iv }),
];
/** A derivation that can create two keys with one value. */
const hkdf = (type: number, how: number): Mechanism => hkdfWith({ info: Buffer.of(how & 1) }, type);
const flags = [CKA.ENCRYPT, CKA.DECRYPT, CKA.WRAP, CKA.UNWRAP, CKA.EXTRACTABLE, CKA.SENSITIVE, CKA.DERIVE] as const;

/** Up to three flags, of twelve bits. */
const rowsOf = (low: number, high: number): readonly Row[] => {
  const rows = new Map<number, boolean>();
  for (let bits = low | (high << 8), i = 0; i < 3; i++, bits >>= 4) {
    const flag = flags[bits & 7];
    if (flag !== undefined) rows.set(flag, (bits & 8) !== 0);
  }
  return [...rows];
};

/** What a sequence found: reached by it, and how many of its calls were carried out. */
interface Outcome {
  readonly found: string | null;
  readonly carriedOut: number;
  readonly attempts: number;
}
class Found extends Error {}

/**
 * One caller, who sees what calls give it; and the values of its sensitive keys, which it must not
 * see.
 */
class Caller {
  readonly #agent: InProcessAgent;
  readonly #application: Application;
  readonly #session: number;
  /** For trying things out while an operation runs in the other. */
  readonly #aside: number;
  readonly #keys: number[] = [];
  readonly #values = new Map<number, string>();
  readonly #wrapped: Buffer[] = [];
  readonly #secrets: Buffer[] = [];
  /** Values of keys that have wrapped a sensitive key. */
  readonly #wrappers = new Set<string>();
  /**
   * Key values (hexadecimal) of the last C_DecryptInit and, below, the last C_MessageDecryptInit;
   * empty: the value is unknown.
   */
  #decrypting = '';
  #opening = '';
  #pair: { readonly privateKey: number; readonly point: Uint8Array } | null = null;
  carriedOut = 0;
  /** Sensitive keys that were wrapped. */
  attempts = 0;

  constructor(agent: InProcessAgent) {
    this.#agent = agent;
    const who = { host: 'h', pid: 1, process: 'p', library: '1', agent: '1', osUser: 'u' };
    this.#application = new Application(agent.service, who, () => undefined);
    agent.connection.application = this.#application;
    this.#session = this.#application.openSession(true).handle;
    this.#aside = this.#application.openSession(true).handle;
    this.#application.login();
  }

  end(): void {
    void this.#application.end();
    this.#agent.connection.application = null;
  }

  /** Undefined when the call is refused. With keys of the session nothing waits. */
  #try<N extends CallName>(name: N, input: Input<N>): unknown {
    try {
      const result = handlers[name]?.(this.#agent.connection, input) ?? true;
      if (result instanceof Promise) throw new Error(`${name} asked the service`);
      return result;
    } catch (error) {
      if (error instanceof CryptokiError || error instanceof CoreError) return undefined;
      throw error;
    }
  }

  #done<N extends CallName>(name: N, input: Input<N>): boolean {
    return this.#try(name, input) !== undefined;
  }

  #key(at: number): number {
    return this.#keys[at % Math.max(this.#keys.length, 1)] ?? 0;
  }
  #data(at: number): Buffer {
    return this.#wrapped[at % Math.max(this.#wrapped.length, 1)] ?? iv;
  }
  #see(output: Uint8Array, how: string): void {
    const seen = Buffer.from(output.buffer, output.byteOffset, output.length);
    for (const secret of this.#secrets) if (seen.includes(secret)) throw new Found(how);
  }

  /** A new key. */
  #add(key: number, secret: boolean): void {
    const object = this.#application.sessionObject(key, 'object');
    if (object?.key == null) throw new Error('a key without a key');
    const value = core.exportSecret(object.key.ref);
    this.#keys.push(key);
    this.#values.set(key, value.toString('hex'));
    if (secret && object.attributes.get(CKA.SENSITIVE) === true) this.#secrets.push(value);
  }

  #read(object: number, how: string): void {
    const asked = { session: this.#aside, object, template: [{ type: CKA.VALUE, capacity: 64 }] };
    const answer = this.#try('C_GetAttributeValue', asked) as { values: readonly unknown[] } | undefined;
    if (answer?.values[0] instanceof Uint8Array) this.#see(answer.values[0], how);
  }

  #unwrap(session: number, mechanism: Mechanism, unwrappingKey: number, wrappedKey: Buffer, rows: readonly Row[]) {
    const whole = template(...aesRows, ...rows);
    return this.#try('C_UnwrapKey', { session, mechanism, unwrappingKey, wrappedKey, template: whole });
  }

  /**
   * A key that has wrapped a sensitive key must not open it again: neither decrypt it, nor unwrap
   * it into a readable key.
   */
  #probeKey(key: number): void {
    const session = this.#aside;
    this.#read(key, 'C_GetAttributeValue');
    if (!this.#wrappers.has(this.#values.get(key) ?? '')) return;
    if (this.#try('C_DecryptInit', { session, mechanism: ecb, key }) !== undefined) throw new Found('C_DecryptInit');
    if (this.#try('C_MessageDecryptInit', { session, mechanism: gcm, key }) !== undefined)
      throw new Found('C_MessageDecryptInit');
  }
  #probePair(key: number, data: Buffer): void {
    const session = this.#aside;
    for (const mechanism of wrappings) {
      const made = this.#unwrap(session, mechanism, key, data, clear);
      if (typeof made !== 'number') continue;
      this.#read(made, 'C_UnwrapKey');
      this.#try('C_DestroyObject', { session, object: made });
    }
  }

  do(step: Uint8Array, at: number): void {
    const [op = 0, a = 0, b = 0, c = 0, d = 0] = step.subarray(at, at + width);
    const keysBefore = this.#keys.length;
    const dataBefore = this.#wrapped.length;
    const changed = this.#carryOut(op % 32, a & 15, a >> 4, b, rowsOf(c, d));
    if (changed === undefined) return;
    this.carriedOut++;
    const touched = this.#keys.slice(keysBefore);
    if (changed !== 0) touched.push(changed);
    const data = this.#wrapped.slice(dataBefore);
    // A wrapping marks its key as a wrapping key, and every other object of the same key.
    for (const key of data.length > 0 ? this.#keys : touched) this.#probeKey(key);
    for (const key of touched) for (const each of this.#wrapped) this.#probePair(key, each);
    for (const key of this.#keys) for (const each of data) this.#probePair(key, each);
  }

  /** Undefined: refused. The key whose attributes have changed, or 0. */
  #carryOut(op: number, one: number, other: number, how: number, rows: readonly Row[]): number | undefined {
    const session = this.#session;
    if (op < 5) {
      const mechanism = mech(CKM.AES_KEY_GEN);
      const asked = { session, mechanism, template: template([CKA.VALUE_LEN, 32], ...rows) };
      return this.#made(this.#try('C_GenerateKey', asked), true);
    }
    if (op < 8)
      return this.#made(this.#try('C_CopyObject', { session, object: this.#key(one), template: template(...rows) }));
    if (op < 10) {
      const object = this.#key(one);
      return this.#done('C_SetAttributeValue', { session, object, template: template(...rows) }) ? object : undefined;
    }
    if (op === 10) return this.#done('C_DestroyObject', { session, object: this.#key(one) }) ? 0 : undefined;
    if (op < 17) return this.#wrap(this.#key(one), this.#key(other), wrappings[how & 3] ?? ecb);
    if (op < 20)
      return this.#made(this.#unwrap(session, wrappings[how & 3] ?? ecb, this.#key(one), this.#data(other), rows));
    if (op === 20) {
      const mechanism = ciphers[how & 3] ?? ecb;
      const key = this.#key(one);
      if (!this.#done('C_DecryptInit', { session, mechanism, key })) return undefined;
      this.#decrypting = this.#values.get(key) ?? '';
      return 0;
    }
    if (op === 21) {
      const out = room(512);
      const length = this.#try('C_Decrypt', { session, encryptedData: this.#data(one), data: out });
      if (typeof length === 'number') this.#see(out.space.subarray(0, length), 'C_Decrypt');
      return length === undefined ? undefined : 0;
    }
    if (op < 25) return this.#message(op, this.#key(one), this.#data(other));
    return this.#derive(op, one, this.#data(other), how, rows);
  }

  /** A new key, or none. */
  #made(key: unknown, secret = false): number | undefined {
    if (typeof key === 'number') this.#add(key, secret);
    return key === undefined ? undefined : 0;
  }

  /** The message functions of 3.0: they run next to the others, and end on their own. */
  #message(op: number, key: number, data: Buffer): number | undefined {
    const session = this.#session;
    const associatedData = Buffer.alloc(0);
    const parameter = {
      kind: 'gcm',
      iv: iv.subarray(4),
      ivFixedBits: 0,
      ivGenerator: 0,
      tagBits: 128,
      tag: iv,
    } as const;
    if (op === 22) {
      if (!this.#done('C_MessageDecryptInit', { session, mechanism: gcm, key })) return undefined;
      this.#opening = this.#values.get(key) ?? '';
      return 0;
    }
    if (op === 23) {
      const plaintext = room(512);
      const sealed = { session, parameter, associatedData, ciphertext: data, plaintext };
      const opened = this.#try('C_DecryptMessage', sealed);
      if (typeof opened === 'number') this.#see(plaintext.space.subarray(0, opened), 'C_DecryptMessage');
      return opened === undefined ? undefined : 0;
    }
    if (!this.#done('C_MessageEncryptInit', { session, mechanism: gcm, key })) return undefined;
    const ciphertext = room(512);
    const generated = { ...parameter, ivGenerator: CKG_IV.GENERATE_RANDOM };
    this.#try('C_EncryptMessage', { session, parameter: generated, associatedData, plaintext: data, ciphertext });
    this.#see(ciphertext.space, 'C_EncryptMessage');
    return this.#done('C_MessageEncryptFinal', { session }) ? 0 : undefined;
  }

  /** Keys and data that are derived from others: the same for each repetition. */
  #derive(op: number, at: number, data: Buffer, how: number, rows: readonly Row[]): number | undefined {
    const session = this.#session;
    const length: Row = [CKA.VALUE_LEN, (how & 2) === 0 ? 32 : 16];
    const baseKey = this.#key(at);
    const derive = (mechanism: Mechanism, base = baseKey) =>
      this.#made(
        this.#try('C_DeriveKey', {
          session,
          mechanism,
          baseKey: base,
          template: template(...aesRows, length, ...rows),
        }),
      );
    const text = Buffer.concat([data, iv]).subarray(0, 32);
    if (op === 25) return derive(mech(CKM.AES_ECB_ENCRYPT_DATA, { kind: 'data', data: text }));
    if (op === 26) return derive(mech(CKM.AES_CBC_ENCRYPT_DATA, { kind: 'ivdata', iv, data: text }));
    // Pairs take most of the time: now and then is enough of them.
    if (op < 30 || (op === 31 && (how & 0xf8) !== 0)) return derive(hkdf(CKM.HKDF_DERIVE, how));
    if (op === 30) {
      const made = this.#try('C_DeriveKey', {
        session,
        mechanism: hkdf(CKM.HKDF_DATA, how),
        baseKey,
        template: template(length),
      });
      if (typeof made !== 'number') return undefined;
      this.#read(made, 'CKM_HKDF_DATA');
      this.#try('C_DestroyObject', { session, object: made });
      return 0;
    }
    const { privateKey, point } = this.#ownPair();
    const parameter = { kind: 'ecdh1', kdf: CKD.SHA256_KDF, shared: Buffer.of(how & 1), publicData: point } as const;
    return derive(mech(CKM.ECDH1_DERIVE, parameter), privateKey);
  }

  /** The caller's own pair, which agrees with itself: no other party has the derived key. */
  #ownPair() {
    if (this.#pair !== null) return this.#pair;
    const made = this.#try('C_GenerateKeyPair', {
      session: this.#session,
      mechanism: mech(CKM.EC_KEY_PAIR_GEN),
      publicTemplate: template([CKA.EC_PARAMS, p256]),
      privateTemplate: template([CKA.DERIVE, true]),
    }) as { publicKey: number; privateKey: number };
    const point = this.#application.sessionObject(made.publicKey, 'object')?.attributes.get(CKA.EC_POINT);
    if (!(point instanceof Uint8Array)) throw new Error('a pair without a point');
    this.#pair = { privateKey: made.privateKey, point };
    return this.#pair;
  }

  #wrap(wrappingKey: number, key: number, mechanism: Mechanism): number | undefined {
    const asked = { session: this.#session, mechanism, wrappingKey, key, wrappedKey: room(512) };
    const wrapped = this.#try('C_WrapKey', asked);
    if (!(wrapped instanceof Uint8Array)) return undefined;
    this.#see(wrapped, 'C_WrapKey');
    this.#wrapped.push(Buffer.from(wrapped));
    const value = this.#values.get(key);
    const sensitive = this.#secrets.some((secret) => secret.toString('hex') === value);
    if (!sensitive) return 0;
    this.attempts++;
    this.#wrappers.add(this.#values.get(wrappingKey) ?? '');
    const { decrypt, messageDecrypt } = this.#application.session(this.#session);
    if (decrypt !== null && this.#wrappers.has(this.#decrypting)) throw new Found('C_DecryptInit before C_WrapKey');
    if (messageDecrypt !== null && this.#wrappers.has(this.#opening))
      throw new Found('C_MessageDecryptInit before C_WrapKey');
    return 0;
  }
}

/** Something to take, something to take it with, and something to derive from. */
const opening = Uint8Array.of(0, 0, 0, 0x7c, 0x77, 0, 0, 0, 0xc1, 0x77, 0, 0, 0, 0x7e, 0x77);

describe('no sequence of calls brings a sensitive key out', () => {
  let agent: InProcessAgent;
  const { stackTraceLimit } = Error;
  beforeAll(async () => {
    agent = await startInProcess();
    // Most calls are refused, and the place does not matter.
    Error.stackTraceLimit = 0;
  });
  afterAll(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });

  const play = (steps: Uint8Array): Outcome => {
    const caller = new Caller(agent);
    try {
      for (let at = 0; at < opening.length; at += width) caller.do(opening, at);
      for (let at = 0; at + width <= steps.length; at += width) caller.do(steps, at);
      return { found: null, carriedOut: caller.carriedOut, attempts: caller.attempts };
    } catch (error) {
      if (error instanceof Found) return { found: error.message, carriedOut: 0, attempts: 0 };
      throw error;
    } finally {
      caller.end();
    }
  };

  test(`in ${runs} sequences (seed ${seed})`, { timeout: 3_600_000 }, () => {
    let carriedOut = 0;
    let attempts = 0;
    const sequence = fc.uint8Array({ minLength: 3 * width, maxLength: longest * width });
    const property = fc.property(sequence, (steps) => {
      const outcome = play(steps);
      carriedOut += outcome.carriedOut;
      attempts += outcome.attempts;
      if (outcome.found !== null) throw new Error(`by ${outcome.found}`);
    });
    fc.assert(property, { numRuns: runs, seed });
    // A search whose calls are all refused has checked nothing, nor has one that never wrapped
    // anything worth taking.
    expect(carriedOut).toBeGreaterThan(4 * runs);
    expect(attempts).toBeGreaterThan(runs / 20);
  });
});
