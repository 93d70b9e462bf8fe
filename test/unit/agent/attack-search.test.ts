// A bounded search over sequences of calls for one that brings the value of a sensitive key out (security of PKCS#11 key
// management: Clulow 2003; Bortolozzo, Centenaro, Focardi, Steel 2010). The caller may do everything but bring keys of its own:
// under a key whose value it knows, the standard lets it wrap whatever may be extracted.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { AttributeValue, Mechanism } from '../../../provider/schema/types.ts';
import { type InProcessAgent, RvError, room, startInProcess } from '../../support/in-process-agent.ts';
import { template } from '../../support/template.ts';

const seed = 20_261_121;
const runs = process.env.SLOW === '1' ? 100_000 : 2_000;

const bytes = Buffer.alloc(16);
const ciphers: readonly Mechanism[] = [
  { type: CKM.AES_ECB, parameter: null },
  { type: CKM.AES_CBC, parameter: { kind: 'bytes', bytes } },
  { type: CKM.AES_CBC_PAD, parameter: { kind: 'bytes', bytes } },
  { type: CKM.AES_CTR, parameter: { kind: 'ctr', counterBits: 128, block: bytes } },
];
const wrappings: readonly Mechanism[] = [
  { type: CKM.AES_KEY_WRAP, parameter: null },
  { type: CKM.AES_KEY_WRAP_KWP, parameter: null },
  { type: CKM.AES_CBC, parameter: { kind: 'bytes', bytes } },
  { type: CKM.AES_CBC_PAD, parameter: { kind: 'bytes', bytes } },
];
const flags = [CKA.ENCRYPT, CKA.DECRYPT, CKA.WRAP, CKA.UNWRAP, CKA.EXTRACTABLE, CKA.SENSITIVE] as const;

const clear: readonly (readonly [number, boolean])[] = [
  [CKA.SENSITIVE, false],
  [CKA.EXTRACTABLE, true],
];

/** Numbers choose among what there is at that moment. */
const pick = fc.nat({ max: 5 });
const rows = fc.uniqueArray(fc.tuple(fc.constantFrom(...flags), fc.boolean()), {
  selector: ([type]) => type,
  maxLength: 3,
});
const how = fc.constantFrom(...wrappings);
/** What changes who may do what; what can be seen then is tried after each of them, all of it. */
const step = fc.oneof(
  fc.record({ do: fc.constant('generate' as const), rows }),
  fc.record({ do: fc.constant('copy' as const), key: pick, rows }),
  fc.record({ do: fc.constant('set' as const), key: pick, rows }),
  fc.record({ do: fc.constant('destroy' as const), key: pick }),
  fc.record({ do: fc.constant('wrap' as const), by: pick, key: pick, how }),
  fc.record({ do: fc.constant('unwrap' as const), by: pick, data: pick, how, rows }),
  fc.record({ do: fc.constant('decryptInit' as const), by: pick, how: fc.constantFrom(...ciphers) }),
  fc.record({ do: fc.constant('decryptRunning' as const), data: pick }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** One caller, who sees what calls give it; and the values of its sensitive keys, which it must not see. */
class Caller {
  readonly #agent: InProcessAgent;
  readonly #session: number;
  /** For trying things out while an operation runs in the other. */
  readonly #aside: number;
  readonly #keys: number[] = [];
  readonly #wrapped: Buffer[] = [];
  readonly #secrets: Buffer[] = [];
  carriedOut = 0;

  constructor(agent: InProcessAgent, session: number, aside: number) {
    this.#agent = agent;
    this.#session = session;
    this.#aside = aside;
  }

  #key(at: number): number {
    return this.#keys[at % Math.max(this.#keys.length, 1)] ?? 0;
  }
  #data(at: number): Buffer {
    return this.#wrapped[at % Math.max(this.#wrapped.length, 1)] ?? bytes;
  }
  #see(output: Uint8Array): void {
    for (const secret of this.#secrets) expect(Buffer.from(output).includes(secret)).toBe(false);
  }

  /** Undefined when the call is refused. */
  async #try<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof RvError) return undefined;
      throw error;
    }
  }

  async #read(object: number): Promise<void> {
    const session = this.#aside;
    const asked = { session, object, template: [{ type: CKA.VALUE, capacity: 512 }] };
    const answer = await this.#try(() => this.#agent.call('C_GetAttributeValue', asked));
    if (answer?.values[0] instanceof Uint8Array) this.#see(answer.values[0]);
  }

  async #finishDecryption(session: number, encryptedData: Buffer): Promise<void> {
    const out = room(512);
    const length = await this.#try(() => this.#agent.call('C_Decrypt', { session, encryptedData, data: out }));
    if (typeof length === 'number') this.#see(out.space.subarray(0, length));
  }

  async #unwrap(
    session: number,
    mechanism: Mechanism,
    unwrappingKey: number,
    wrappedKey: Buffer,
    asked: readonly (readonly [number, AttributeValue])[],
  ): Promise<number | undefined> {
    const whole = template([CKA.CLASS, CKO.SECRET_KEY], [CKA.KEY_TYPE, CKK.AES], ...asked);
    const call = { session, mechanism, unwrappingKey, wrappedKey, template: whole };
    return this.#try(() => this.#agent.call('C_UnwrapKey', call) as Promise<number>);
  }

  /** Everything that could show a value, with all that there is. */
  async look(): Promise<void> {
    const session = this.#aside;
    for (const key of this.#keys) await this.#read(key);
    for (const data of this.#wrapped.slice(-3)) {
      for (const key of this.#keys) {
        for (const mechanism of ciphers) {
          if ((await this.#agent.rv('C_DecryptInit', { session, mechanism, key })) !== 'CKR_OK') continue;
          await this.#finishDecryption(session, data);
          await this.#agent.call('C_DecryptInit', { session, mechanism: null, key: 0 });
        }
        for (const mechanism of wrappings) {
          const made = await this.#unwrap(session, mechanism, key, data, clear);
          if (made === undefined) continue;
          await this.#read(made);
          await this.#agent.call('C_DestroyObject', { session, object: made });
        }
      }
    }
  }

  async do(work: Step): Promise<void> {
    if ((await this.#try(() => this.#carryOut(work))) === true) this.carriedOut++;
  }

  async #carryOut(work: Step): Promise<boolean> {
    const agent = this.#agent;
    const session = this.#session;
    switch (work.do) {
      case 'generate': {
        const asked: (readonly [number, AttributeValue])[] = [[CKA.VALUE_LEN, 32], ...work.rows];
        const mechanism = { type: CKM.AES_KEY_GEN, parameter: null };
        const key = (await agent.call('C_GenerateKey', { session, mechanism, template: template(...asked) })) as number;
        this.#keys.push(key);
        const object = agent.connection.application?.sessionObject(key, 'object');
        const sensitive = object?.attributes.get(CKA.SENSITIVE) === true;
        if (sensitive && object?.key) this.#secrets.push(core.exportSecret(object.key.ref));
        return true;
      }
      case 'copy': {
        const asked = { session, object: this.#key(work.key), template: template(...work.rows) };
        this.#keys.push((await agent.call('C_CopyObject', asked)) as number);
        return true;
      }
      case 'set': {
        const asked = { session, object: this.#key(work.key), template: template(...work.rows) };
        await agent.call('C_SetAttributeValue', asked);
        return true;
      }
      case 'destroy':
        await agent.call('C_DestroyObject', { session, object: this.#key(work.key) });
        return true;
      case 'wrap': {
        const asked = { session, mechanism: work.how, wrappingKey: this.#key(work.by), key: this.#key(work.key) };
        const wrapped = await agent.call('C_WrapKey', { ...asked, wrappedKey: room(512) });
        if (!(wrapped instanceof Uint8Array)) return false;
        this.#see(wrapped);
        this.#wrapped.push(Buffer.from(wrapped));
        return true;
      }
      case 'unwrap': {
        const made = await this.#unwrap(session, work.how, this.#key(work.by), this.#data(work.data), work.rows);
        if (made !== undefined) this.#keys.push(made);
        return made !== undefined;
      }
      case 'decryptInit':
        await agent.call('C_DecryptInit', { session, mechanism: work.how, key: this.#key(work.by) });
        return true;
      case 'decryptRunning':
        await this.#finishDecryption(session, this.#data(work.data));
        return true;
    }
  }
}

const play = async (steps: readonly Step[]): Promise<number> => {
  const agent = await startInProcess();
  const caller = new Caller(agent, await agent.open(), await agent.open());
  try {
    // There is something to take, and something to take it with.
    await caller.do({ do: 'generate', rows: [[CKA.EXTRACTABLE, true]] });
    await caller.do({
      do: 'generate',
      rows: [
        [CKA.DECRYPT, false],
        [CKA.EXTRACTABLE, true],
      ],
    });
    for (const work of steps) {
      await caller.do(work);
      await caller.look();
    }
    return caller.carriedOut;
  } finally {
    await agent.call('C_Finalize', {});
  }
};

describe('no sequence of calls brings a sensitive key out', () => {
  test(`in ${runs} sequences (seed ${seed}; SLOW=1 for more)`, { timeout: 3_600_000 }, async () => {
    let carriedOut = 0;
    const sequences = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      carriedOut += await play(steps);
    });
    await fc.assert(sequences, { numRuns: runs, seed });
    // A search whose calls are all refused has looked at nothing.
    expect(carriedOut).toBeGreaterThan(4 * runs);
  });
});
