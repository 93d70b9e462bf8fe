// The search of attack-search.test.ts, where keys of the token take part, and the service
// answers: generated, copied, wrapped, unwrapped and derived on the token and between it and the
// session, and changed in the meantime. Two keys belong to a user, sensitive and extractable, one
// of the token and one of the session: their values must not be seen. A key that has wrapped one of
// them, whichever object holds it, must not open that again; and a key of the token whose value
// could be read wraps none of them.
//
// The test knows from their origin which objects contain the same key: the service does not reveal
// it.
//
// DKE_TEST_TOKEN_SEQUENCES: how many, in place of that of test/support/tiers.ts.
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { CoreError } from '../../../addon/core.ts';
import { Application } from '../../../provider/agent/sessions/application.ts';
import { handlers } from '../../../provider/agent/threads/dispatch.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import type { CallName, Input } from '../../../provider/schema/calls.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { CryptokiError, type Mechanism } from '../../../provider/schema/types.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { type InProcessAgent, room, startInProcess } from '../../support/in-process-agent.ts';
import fc from '../../support/property.ts';
import { aesRows, clear, hkdfWith, iv, mech, wrappings } from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';
import { sizeOf } from '../../support/tiers.ts';

const seed = 20_261_121;
const runs = Number(process.env.DKE_TEST_TOKEN_SEQUENCES ?? sizeOf('attack search on the token'));

const ecb: Mechanism = mech(CKM.AES_ECB);
const gcm: Mechanism = mech(CKM.AES_GCM);
const hkdf = hkdfWith();

const flags = [CKA.DECRYPT, CKA.WRAP, CKA.UNWRAP, CKA.EXTRACTABLE, CKA.SENSITIVE, CKA.DERIVE] as const;
const rows = fc.uniqueArray(fc.tuple(fc.constantFrom(...flags), fc.boolean()), {
  selector: ([type]) => type,
  maxLength: 3,
});
const at = fc.nat({ max: 11 });
/** A user's keys and their wrapping keys: chosen more often than by chance. */
const victim = fc.oneof(fc.constantFrom(0, 2), at);
const wrapper = fc.oneof(fc.constantFrom(1, 3, 5), at);
const token = fc.boolean();
const how = fc.constantFrom(...wrappings);
/** No sensitive key can be wrapped under a cipher: that is tried, but not half of the time. */
const usual = fc.oneof(how, fc.constantFrom(...wrappings.slice(0, 2)));
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('generate' as const), token, rows }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('copy' as const), key: at, token, rows }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('set' as const), key: at, rows }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wrap' as const), by: wrapper, key: victim, how: usual }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('unwrap' as const), by: wrapper, data: at, how, token, rows }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('derive' as const), key: at, token, rows }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('encryptData' as const), key: at, data: at, token, rows }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deriveData' as const), key: at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('decryptInit' as const), key: at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('messageDecryptInit' as const), key: at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('decryptRunning' as const), data: at }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** An object, and which key it holds: the same text, the same key. */
interface Held {
  readonly handle: number;
  readonly onToken: boolean;
  readonly is: string;
}
interface Wrapped {
  readonly is: string;
  readonly bytes: Buffer;
  readonly by: string;
}
class Found extends Error {}

class Caller {
  readonly #agent: InProcessAgent;
  readonly #application: Application;
  readonly #session: number;
  /** For trying things out while an operation runs in the other. */
  readonly #aside: number;
  readonly #keys: Held[] = [];
  readonly #wrapped: Wrapped[] = [];
  /** The values of the keys that belong to a user, and what those keys are. */
  readonly #secrets: Buffer[] = [];
  readonly #victims = new Set<string>();
  /** Keys that have wrapped one of them. */
  readonly #wrappers = new Set<string>();
  /** Keys whose values were read. */
  readonly #known = new Set<string>();
  #running = '';
  carriedOut = 0;
  /** Keys that belong to a user and were wrapped: under keys of the session, and of the token. */
  taken = 0;

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

  /** Undefined when the call is refused. */
  async #try<N extends CallName>(name: N, input: Input<N>): Promise<unknown> {
    try {
      return (await handlers[name]?.(this.#agent.connection, input)) ?? true;
    } catch (error) {
      if (error instanceof CryptokiError || error instanceof CoreError) return undefined;
      if (error instanceof ServiceError && error.code !== 'internal') return undefined;
      throw error;
    }
  }

  #key(index: number): Held {
    return this.#keys[index % this.#keys.length] ?? { handle: 0, onToken: false, is: '' };
  }
  #data(index: number): Wrapped {
    return this.#wrapped[index % Math.max(this.#wrapped.length, 1)] ?? { bytes: Buffer.alloc(40), is: '', by: '' };
  }
  #see(output: Uint8Array, by: string): void {
    for (const secret of this.#secrets) if (Buffer.from(output).includes(secret)) throw new Found(by);
  }

  /** What there is before the caller begins. */
  async begin(): Promise<void> {
    for (const where of [true, false]) {
      const value = randomBytes(32);
      const asked = template(...aesRows, [CKA.VALUE, value], [CKA.TOKEN, where], [CKA.EXTRACTABLE, true]);
      const handle = await this.#try('C_CreateObject', { session: this.#session, template: asked });
      if (typeof handle !== 'number') throw new Error('nothing to take');
      const is = `a user’s ${handle}`;
      this.#keys.push({ handle, onToken: where, is });
      this.#secrets.push(value);
      this.#victims.add(is);
      await this.#carryOut({ do: 'generate', token: where, rows: [[CKA.DECRYPT, false]] });
    }
    await this.#carryOut({ do: 'generate', token: true, rows: [[CKA.DERIVE, true]] });
    await this.#carryOut({
      do: 'generate',
      token: true,
      rows: [
        [CKA.DECRYPT, false],
        [CKA.SENSITIVE, false],
        [CKA.EXTRACTABLE, true],
      ],
    });
    for (const key of this.#keys) await this.#look(key);
  }

  async do(work: Step): Promise<void> {
    const [keys, wrapped] = [this.#keys.length, this.#wrapped.length];
    const changed = await this.#carryOut(work);
    if (changed === null) return;
    this.carriedOut++;
    const touched = [...this.#keys.slice(keys), ...changed];
    const data = this.#wrapped.slice(wrapped);
    for (const key of touched) await this.#look(key);
    for (const key of touched) for (const each of this.#wrapped) await this.#open(key, each);
    for (const each of data) for (const key of this.#keys) await this.#open(key, each);
    if (data.length > 0 && this.#wrappers.has(this.#running)) await this.#finish('C_DecryptInit before C_WrapKey');
  }

  async #look({ handle, is }: Held): Promise<void> {
    if (await this.#read(handle, 'C_GetAttributeValue')) this.#known.add(is);
  }

  /** Whether there was something to read. */
  async #read(object: number, by: string): Promise<boolean> {
    const asked = { session: this.#aside, object, template: [{ type: CKA.VALUE, capacity: 64 }] };
    const answer = (await this.#try('C_GetAttributeValue', asked)) as { values: readonly unknown[] } | undefined;
    const value = answer?.values[0];
    if (!(value instanceof Uint8Array)) return false;
    this.#see(value, by);
    return true;
  }

  /** Whether a key opens its own wrappings, through any of its objects. */
  async #open({ handle: key, is }: Held, data: Wrapped): Promise<void> {
    if (is !== data.by) return;
    const session = this.#aside;
    if (this.#wrappers.has(is)) {
      // For a token key, the service checks it: at the Init, and again with the data.
      await this.#try('C_SetAttributeValue', { session, object: key, template: template([CKA.DECRYPT, true]) });
      for (const start of ['C_DecryptInit', 'C_MessageDecryptInit'] as const) {
        const mechanism = start === 'C_DecryptInit' ? ecb : gcm;
        if ((await this.#try(start, { session, mechanism, key })) === undefined) continue;
        const out = room(512);
        const opened =
          start === 'C_DecryptInit'
            ? await this.#try('C_Decrypt', { session, encryptedData: data.bytes.subarray(0, 32), data: out })
            : undefined;
        await this.#try(start, { session, mechanism: null, key: 0 });
        if (opened !== undefined || start === 'C_MessageDecryptInit') throw new Found(start);
      }
    }
    for (const mechanism of wrappings) {
      const asked = {
        session,
        mechanism,
        unwrappingKey: key,
        wrappedKey: data.bytes,
        template: template(...aesRows, ...clear),
      };
      const made = await this.#try('C_UnwrapKey', asked);
      if (typeof made !== 'number') continue;
      await this.#read(made, 'C_UnwrapKey');
      await this.#try('C_DestroyObject', { session, object: made });
    }
  }

  async #finish(by: string): Promise<void> {
    const out = room(512);
    const encryptedData = this.#data(0).bytes.subarray(0, 32);
    const length = await this.#try('C_Decrypt', { session: this.#session, encryptedData, data: out });
    const running = this.#running;
    this.#running = '';
    if (length !== undefined && this.#wrappers.has(running)) throw new Found(by);
  }

  /** The objects whose attributes have changed; null when the call was refused. */
  async #carryOut(work: Step): Promise<readonly Held[] | null> {
    const session = this.#session;
    const made = (handle: unknown, is: string): readonly Held[] | null => {
      if (typeof handle !== 'number') return null;
      this.#keys.push({ handle, onToken: 'token' in work && work.token, is: is === '' ? `key ${handle}` : is });
      return [];
    };
    switch (work.do) {
      case 'generate': {
        const mechanism = mech(CKM.AES_KEY_GEN);
        const asked = template([CKA.VALUE_LEN, 32], [CKA.TOKEN, work.token], ...work.rows);
        return made(await this.#try('C_GenerateKey', { session, mechanism, template: asked }), '');
      }
      case 'copy': {
        const { handle, is } = this.#key(work.key);
        const asked = template([CKA.TOKEN, work.token], ...work.rows);
        return made(await this.#try('C_CopyObject', { session, object: handle, template: asked }), is);
      }
      case 'set': {
        const key = this.#key(work.key);
        const asked = { session, object: key.handle, template: template(...work.rows) };
        return (await this.#try('C_SetAttributeValue', asked)) === undefined ? null : [key];
      }
      case 'wrap': {
        const [by, key] = [this.#key(work.by), this.#key(work.key)];
        const asked = { session, mechanism: work.how, wrappingKey: by.handle, key: key.handle, wrappedKey: room(512) };
        const wrapped = await this.#try('C_WrapKey', asked);
        if (!(wrapped instanceof Uint8Array)) return null;
        this.#see(wrapped, 'C_WrapKey');
        this.#wrapped.push({ bytes: Buffer.from(wrapped), is: key.is, by: by.is });
        if (!this.#victims.has(key.is)) return [];
        this.taken++;
        if (by.onToken && this.#known.has(by.is)) throw new Found('C_WrapKey under a known key');
        this.#wrappers.add(by.is);
        return [];
      }
      case 'unwrap': {
        const [by, data] = [this.#key(work.by), this.#data(work.data)];
        const asked = template(...aesRows, [CKA.TOKEN, work.token], ...work.rows);
        const call = {
          session,
          mechanism: work.how,
          unwrappingKey: by.handle,
          wrappedKey: data.bytes,
          template: asked,
        };
        // Under another key, or with another mechanism, the result is different.
        return made(await this.#try('C_UnwrapKey', call), by.is === data.by ? data.is : '');
      }
      case 'derive': {
        const { handle, is } = this.#key(work.key);
        const asked = template(...aesRows, [CKA.VALUE_LEN, 32], [CKA.TOKEN, work.token], ...work.rows);
        const call = { session, mechanism: hkdf, baseKey: handle, template: asked };
        return made(await this.#try('C_DeriveKey', call), `of ${is}`);
      }
      case 'encryptData': {
        const data = Buffer.concat([this.#data(work.data).bytes, iv]).subarray(0, 32);
        const mechanism = { type: CKM.AES_ECB_ENCRYPT_DATA, parameter: { kind: 'data', data } } as const;
        const asked = template(...aesRows, [CKA.VALUE_LEN, 32], [CKA.TOKEN, work.token], ...work.rows);
        const call = { session, mechanism, baseKey: this.#key(work.key).handle, template: asked };
        return made(await this.#try('C_DeriveKey', call), '');
      }
      case 'deriveData': {
        const mechanism = { ...hkdf, type: CKM.HKDF_DATA };
        const call = {
          session,
          mechanism,
          baseKey: this.#key(work.key).handle,
          template: template([CKA.VALUE_LEN, 32]),
        };
        const object = await this.#try('C_DeriveKey', call);
        if (typeof object !== 'number') return null;
        await this.#read(object, 'CKM_HKDF_DATA');
        return [];
      }
      case 'decryptInit': {
        const { handle: key, is } = this.#key(work.key);
        if ((await this.#try('C_DecryptInit', { session, mechanism: ecb, key })) === undefined) return null;
        this.#running = is;
        return [];
      }
      case 'messageDecryptInit': {
        const { handle: key } = this.#key(work.key);
        return (await this.#try('C_MessageDecryptInit', { session, mechanism: gcm, key })) === undefined ? null : [];
      }
      case 'decryptRunning': {
        const out = room(512);
        const encryptedData = this.#data(work.data).bytes;
        const length = await this.#try('C_Decrypt', { session, encryptedData, data: out });
        if (length === undefined) return null;
        if (typeof length === 'number') this.#see(out.space.subarray(0, length), 'C_Decrypt');
        return [];
      }
    }
  }
}

describe('no sequence of calls brings a sensitive key of the token out', () => {
  let agent: InProcessAgent;
  beforeAll(async () => {
    agent = await startInProcess();
  });

  test(`in ${runs} sequences (seed ${seed})`, { timeout: 3_600_000 }, async () => {
    let carriedOut = 0;
    let taken = 0;
    const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      const caller = new Caller(agent);
      try {
        await caller.begin();
        for (const work of steps) await caller.do(work);
      } catch (error) {
        throw error instanceof Found ? new Error(`by ${error.message}`) : error;
      } finally {
        caller.end();
      }
      carriedOut += caller.carriedOut;
      taken += caller.taken;
    });
    await fc.assert(property, { numRuns: runs, seed });
    // A search whose calls are all refused has checked nothing, nor has one that never wrapped
    // anything worth taking.
    expect(carriedOut).toBeGreaterThan(2 * runs);
    expect(taken).toBeGreaterThan(runs / 8);
  });
});
