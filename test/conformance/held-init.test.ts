// A database uses one key for message after message; from the second one on the library holds each
// Init back until its operation follows, and a Final that has nothing to say (PROTOCOL.md, "Held
// Init"). Whatever a caller does then must give what it gives without that.
import { createCipheriv } from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { CKA } from '../../provider/schema/attributes.ts';
import { CKM } from '../../provider/schema/mechanisms.ts';
import { given, type InProcessAgent, RvError, room, startInProcess } from '../support/in-process-agent.ts';
import { CKK, CKO } from '../support/names.ts';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';
import fc from '../support/property.ts';
import { template } from '../support/template.ts';

let host: Pkcs11Host;
let pkcs11: pkcs11js.PKCS11;
let session: Buffer;
let key: Buffer;
beforeAll(async () => {
  host = await startHost();
  ({ pkcs11 } = host);
  session = host.open();
});
afterAll(() => host?.stop());

const value = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex');
const data = Buffer.alloc(48, 7);
const cbc = (filling = 0): pkcs11js.Mechanism => ({
  mechanism: pkcs11js.CKM_AES_CBC,
  parameter: Buffer.alloc(16, filling),
});
const expected = (filling: number): Buffer => {
  const cipher = createCipheriv('aes-128-cbc', value, Buffer.alloc(16, filling)).setAutoPadding(false);
  return Buffer.concat([cipher.update(data), cipher.final()]);
};
const makeKey = (isPrivate = false): Buffer =>
  pkcs11.C_CreateObject(session, [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
    { type: pkcs11js.CKA_PRIVATE, value: isPrivate },
    { type: pkcs11js.CKA_ENCRYPT, value: true },
    { type: pkcs11js.CKA_DECRYPT, value: true },
    { type: pkcs11js.CKA_VALUE, value },
  ]);
const encrypt = (filling: number, target = session): Buffer => {
  pkcs11.C_EncryptInit(target, cbc(filling), key);
  return pkcs11.C_Encrypt(target, data, Buffer.alloc(64));
};

beforeEach(() => {
  key = makeKey();
  encrypt(0);
});

test('every message has its own IV', () => {
  for (const filling of [1, 2, 1]) expect(encrypt(filling)).toEqual(expected(filling));
});

test('two Inits in a row are one too many, and the first one counts', () => {
  pkcs11.C_EncryptInit(session, cbc(1), key);
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(2), key))).toBe('CKR_OPERATION_ACTIVE');
  expect(pkcs11.C_Encrypt(session, data, Buffer.alloc(64))).toEqual(expected(1));
  expect(rvOf(() => pkcs11.C_Encrypt(session, data, Buffer.alloc(64)))).toBe('CKR_OPERATION_NOT_INITIALIZED');
});

test('a destroyed key is refused by the next Init', () => {
  pkcs11.C_DestroyObject(session, key);
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(), key))).toBe('CKR_KEY_HANDLE_INVALID');
});

test('a key destroyed between Init and operation ends the operation, also from another session', () => {
  const other = host.open();
  pkcs11.C_EncryptInit(session, cbc(), key);
  pkcs11.C_DestroyObject(other, key);
  expect(rvOf(() => pkcs11.C_Encrypt(session, data, Buffer.alloc(64)))).not.toBe('CKR_OK');
  pkcs11.C_CloseSession(other);
});

test('a key destroyed between the last part and the Final ends the operation', () => {
  pkcs11.C_EncryptInit(session, cbc(), key);
  pkcs11.C_EncryptUpdate(session, data, Buffer.alloc(64));
  pkcs11.C_DestroyObject(session, key);
  expect(rvOf(() => pkcs11.C_EncryptFinal(session, Buffer.alloc(16)))).toBe('CKR_KEY_HANDLE_INVALID');
});

test('a key that loses its permission is refused by the next Init', () => {
  pkcs11.C_SetAttributeValue(session, key, [{ type: pkcs11js.CKA_ENCRYPT, value: false }]);
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(), key))).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
});

test('an operation in parts continues where its Init left off', () => {
  pkcs11.C_EncryptInit(session, cbc(5), key);
  const first = pkcs11.C_EncryptUpdate(session, data.subarray(0, 16), Buffer.alloc(32));
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(5), key))).toBe('CKR_OPERATION_ACTIVE');
  const second = pkcs11.C_EncryptUpdate(session, data.subarray(16), Buffer.alloc(48));
  pkcs11.C_EncryptFinal(session, Buffer.alloc(16));
  expect(Buffer.concat([first, second])).toEqual(expected(5));
  expect(encrypt(6)).toEqual(expected(6));
});

test('encryption and decryption in one session do not disturb each other', () => {
  for (const filling of [1, 2, 3]) {
    pkcs11.C_EncryptInit(session, cbc(filling), key);
    pkcs11.C_DecryptInit(session, cbc(filling), key);
    const sealed = pkcs11.C_Encrypt(session, data, Buffer.alloc(64));
    expect(pkcs11.C_Decrypt(session, sealed, Buffer.alloc(64))).toEqual(data);
  }
});

test('a session that is closed takes its Init along', () => {
  const other = host.open();
  encrypt(1, other);
  pkcs11.C_EncryptInit(other, cbc(1), key);
  pkcs11.C_CloseSession(other);
  expect(rvOf(() => pkcs11.C_Encrypt(other, data, Buffer.alloc(64)))).toBe('CKR_SESSION_HANDLE_INVALID');
  expect(encrypt(2)).toEqual(expected(2));
});

// --- next to the agent's functions called directly, one by one -----------------------------------

type Way = 'Encrypt' | 'Decrypt';
type Step =
  | { readonly do: 'init'; readonly way: Way; readonly mechanism: number; readonly key: number }
  | { readonly do: 'whole' | 'part'; readonly way: Way; readonly length: number; readonly room: number }
  | { readonly do: 'final'; readonly way: Way; readonly room: number }
  | { readonly do: 'renew'; readonly key: number }
  | { readonly do: 'label'; readonly key: number };
/** What a step came to: its bytes in hexadecimal, or the return value's name. */
type Doer = (step: Step) => string | Promise<string>;

const mechanisms = [
  { type: CKM.AES_ECB, parameter: null },
  { type: CKM.AES_CBC, parameter: { kind: 'bytes' as const, bytes: Buffer.alloc(16, 1) } },
];

const way = fc.constantFrom<Way>('Encrypt', 'Encrypt', 'Encrypt', 'Decrypt');
// Never empty: pkcs11js passes an empty buffer as a null pointer, which queries the length.
const length = fc.constantFrom(1, 15, 16, 16, 32, 48);
const space = fc.constantFrom(1, 16, 64, 64, 64);
const anyKey = fc.constantFrom(0, 0, 0, 1);
const anyMechanism = fc.constantFrom(0, 1, 1);
const record = (init: Step, ...rest: readonly Step[]): readonly Step[] => [init, ...rest];
const steps: fc.Arbitrary<readonly Step[]> = fc.oneof(
  // The calls of a database: an Init, parts of whole blocks and a Final.
  {
    weight: 5,
    arbitrary: fc
      .tuple(way, anyMechanism, anyKey, fc.array(fc.constantFrom(16, 32, 48), { minLength: 1, maxLength: 3 }))
      .map(([w, mechanism, k, parts]) =>
        record(
          { do: 'init', way: w, mechanism, key: k },
          ...parts.map((part): Step => ({ do: 'part', way: w, length: part, room: 64 })),
          { do: 'final', way: w, room: 16 },
        ),
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ do: fc.constant('init' as const), way, mechanism: anyMechanism, key: anyKey })
      .map((s) => [s]),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({ do: fc.constantFrom('whole' as const, 'part' as const), way, length, room: space })
      .map((s) => [s]),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('final' as const), way, room: space }).map((s) => [s]) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('renew' as const, 'label' as const), key: anyKey }).map((s) => [s]),
  },
);

const byLibrary = (): Doer => {
  const own = host.open();
  const keys = [makeKey(), makeKey()];
  const keyAt = (index: number): Buffer => keys[index] ?? key;
  const run = (step: Step): Buffer | undefined => {
    if (step.do === 'renew') {
      pkcs11.C_DestroyObject(own, keyAt(step.key));
      keys[step.key] = makeKey();
      return undefined;
    }
    if (step.do === 'label') {
      pkcs11.C_SetAttributeValue(own, keyAt(step.key), [{ type: CKA.LABEL, value: 'of a test' }]);
      return undefined;
    }
    const encrypts = step.way === 'Encrypt';
    if (step.do === 'init') {
      const { type, parameter } = mechanisms[step.mechanism] ?? { type: 0, parameter: null };
      const mechanism = parameter === null ? { mechanism: type } : { mechanism: type, parameter: parameter.bytes };
      if (encrypts) pkcs11.C_EncryptInit(own, mechanism, keyAt(step.key));
      else pkcs11.C_DecryptInit(own, mechanism, keyAt(step.key));
      return undefined;
    }
    const out = Buffer.alloc(step.room);
    if (step.do === 'final') return encrypts ? pkcs11.C_EncryptFinal(own, out) : pkcs11.C_DecryptFinal(own, out);
    const input = Buffer.alloc(step.length, 6);
    if (step.do === 'part')
      return encrypts ? pkcs11.C_EncryptUpdate(own, input, out) : pkcs11.C_DecryptUpdate(own, input, out);
    return encrypts ? pkcs11.C_Encrypt(own, input, out) : pkcs11.C_Decrypt(own, input, out);
  };
  return (step) => {
    let bytes: Buffer | undefined;
    const rv = rvOf(() => {
      bytes = run(step);
    });
    return rv === 'CKR_OK' ? (bytes?.toString('hex') ?? '') : rv;
  };
};

const directly = async (agent: InProcessAgent): Promise<Doer> => {
  const own = await agent.open();
  const make = () =>
    agent.call('C_CreateObject', {
      session: own,
      template: template(
        [CKA.CLASS, CKO.SECRET_KEY],
        [CKA.KEY_TYPE, CKK.AES],
        [CKA.PRIVATE, false],
        [CKA.ENCRYPT, true],
        [CKA.DECRYPT, true],
        [CKA.VALUE, value],
      ),
    });
  const keys = [await make(), await make()];
  const keyAt = (index: number): number => keys[index] ?? 0;
  const run = async (step: Step): Promise<string> => {
    if (step.do === 'renew') {
      await agent.call('C_DestroyObject', { session: own, object: keyAt(step.key) });
      keys[step.key] = await make();
      return '';
    }
    if (step.do === 'label') {
      const label = template([CKA.LABEL, Buffer.from('of a test')]);
      await agent.call('C_SetAttributeValue', { session: own, object: keyAt(step.key), template: label });
      return '';
    }
    const encrypts = step.way === 'Encrypt';
    if (step.do === 'init') {
      const mechanism = mechanisms[step.mechanism] ?? null;
      await agent.call(`C_${step.way}Init`, { session: own, mechanism, key: keyAt(step.key) });
      return '';
    }
    const out = room(step.room);
    const input = step.do === 'final' ? Buffer.alloc(0) : Buffer.alloc(step.length, 6);
    const call = () => {
      if (step.do === 'final')
        return encrypts
          ? agent.call('C_EncryptFinal', { session: own, lastEncryptedPart: out })
          : agent.call('C_DecryptFinal', { session: own, lastPart: out });
      if (step.do === 'part')
        return encrypts
          ? agent.call('C_EncryptUpdate', { session: own, part: input, encryptedPart: out })
          : agent.call('C_DecryptUpdate', { session: own, encryptedPart: input, part: out });
      return encrypts
        ? agent.call('C_Encrypt', { session: own, data: input, encryptedData: out })
        : agent.call('C_Decrypt', { session: own, encryptedData: input, data: out });
    };
    // The length only: the library turns it into a return value.
    const output = given(out, await call());
    return typeof output === 'number' ? 'CKR_BUFFER_TOO_SMALL' : output.toString('hex');
  };
  return async (step) => {
    try {
      return await run(step);
    } catch (error) {
      if (error instanceof RvError) return error.rv;
      throw error;
    }
  };
};

test('any sequence of operations comes to what it comes to when each call is carried out at once', async () => {
  const agent = await startInProcess();
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 25 }), async (sequence) => {
      const [held, direct] = [byLibrary(), await directly(agent)];
      for (const step of sequence.flat()) expect([step, await held(step)]).toEqual([step, await direct(step)]);
    }),
    { numRuns: 400 },
  );
});

// Last, because it logs out.
test('C_Logout ends what runs on a private key, and the next Init finds none', () => {
  key = makeKey(true);
  encrypt(1);
  pkcs11.C_EncryptInit(session, cbc(1), key);
  pkcs11.C_Logout(session);
  expect(rvOf(() => pkcs11.C_Encrypt(session, data, Buffer.alloc(64)))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(1), key))).toBe('CKR_KEY_HANDLE_INVALID');
});
