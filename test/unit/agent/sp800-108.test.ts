// The KDFs of SP 800-108 in counter and feedback mode (PKCS#11 3.1, section 6.42), with keys of the
// session and of the token: every order of the parts against an HMAC of Node's, and the refusals.
// NIST's answers are in known-answers.test.ts.
import { createHmac } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO, DKM_LENGTH, PRF_DATA } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { clear, mech, onToken, type Row, startSession } from '../../support/session-calls.ts';
import {
  bytes,
  count,
  counter,
  counterKdf,
  feedbackKdf,
  kdf,
  length,
  type Parameter,
  part,
  previous,
} from '../../support/sp800-108.ts';

const nothing = new Uint8Array(0);
const generic = (size: number): Row[] => [
  [CKA.CLASS, CKO.SECRET_KEY],
  [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
  [CKA.VALUE_LEN, size],
  ...clear,
];

const secret = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
const number = (value: number, bits: number, littleEndian: boolean): Buffer => {
  const out = Buffer.from(value.toString(16).padStart(bits / 4, '0'), 'hex');
  return littleEndian ? out.reverse() : out;
};
/** The reference: derives the key part by part with Node's HMAC. */
const reference = ({ parameter }: Mechanism, feedback: boolean, size: number): Buffer => {
  const { data, iv } = parameter as Parameter;
  const blocks: Buffer[] = [];
  for (let i = 1; 32 * blocks.length < size; i++) {
    const hmac = createHmac('sha256', secret);
    for (const { type, bits, littleEndian, method, bytes: value } of data) {
      if (type === PRF_DATA.BYTE_ARRAY) hmac.update(value);
      else if (type === PRF_DATA.DKM_LENGTH) {
        const whole = method === DKM_LENGTH.SEGMENTS ? Math.ceil(size / 32) * 32 : size;
        hmac.update(number(whole * 8, bits, littleEndian));
      } else if (type === PRF_DATA.ITERATION_VARIABLE && feedback) hmac.update(blocks.at(-1) ?? iv);
      else hmac.update(number(i, bits, littleEndian));
    }
    blocks.push(hmac.digest());
  }
  return Buffer.concat(blocks).subarray(0, size);
};
const [label, context] = [bytes(Buffer.from('label\0')), bytes(Buffer.from('context'))];
const orders: readonly (readonly [string, Mechanism, boolean])[] = [
  ['counter first', counterKdf(CKM.SHA256_HMAC, counter(16), label, context, length(32, DKM_LENGTH.KEYS)), false],
  ['counter last, little-endian', counterKdf(CKM.SHA256_HMAC, label, context, counter(24, true)), false],
  [
    'counter in the middle, lengths of segments',
    counterKdf(CKM.SHA256_HMAC, label, counter(8), length(16, DKM_LENGTH.SEGMENTS, true), context),
    false,
  ],
  ['nothing but a counter', counterKdf(CKM.SHA256_HMAC, counter(32)), false],
  ['feedback alone, without an IV', feedbackKdf(CKM.SHA256_HMAC, nothing, previous), true],
  ['feedback, counter before', feedbackKdf(CKM.SHA256_HMAC, Buffer.from('iv'), count(8), previous, label), true],
  ['feedback, counter after', feedbackKdf(CKM.SHA256_HMAC, Buffer.alloc(99, 1), previous, count(8, true), label), true],
  [
    'feedback, parts apart',
    feedbackKdf(CKM.SHA256_HMAC, Buffer.from('iv'), label, count(32), context, previous, length(64, DKM_LENGTH.KEYS)),
    true,
  ],
];

describe.each([
  ['session', [CKA.TOKEN, false]],
  ['token', onToken],
] as const satisfies readonly (readonly [string, Row])[])('with a base of the %s', (_place, place) => {
  let call: Awaited<ReturnType<typeof startSession>>;
  const base = (keyType: number, value: Uint8Array): Promise<number> =>
    call.create([CKA.CLASS, CKO.SECRET_KEY], [CKA.KEY_TYPE, keyType], [CKA.VALUE, value], [CKA.DERIVE, true], place);
  beforeAll(async () => {
    call = await startSession();
  });

  test.each(orders)('%s', async (_name, mechanism, feedback) => {
    const key = await base(CKK.GENERIC_SECRET, secret);
    for (const size of [1, 32, 33, 100]) {
      const made = await call.derive(mechanism, key, ...generic(size));
      expect(await call.value(made)).toEqual(reference(mechanism, feedback, size));
    }
  });

  test('what cannot be derived is refused', async () => {
    const key = await base(CKK.GENERIC_SECRET, secret);
    const aes = await base(CKK.AES, secret);
    const refused = (mechanism: Mechanism, rv: string, from = key, size = 32) =>
      expect(call.derive(mechanism, from, ...generic(size))).rejects.toThrow(rv);
    const { SHA256_HMAC: prf, SP800_108_COUNTER_KDF: counting, SP800_108_FEEDBACK_KDF: feeding } = CKM;
    for (const mechanism of [
      counterKdf(prf),
      counterKdf(prf, label),
      counterKdf(prf, counter(0)),
      counterKdf(prf, counter(12)),
      counterKdf(prf, counter(40)),
      counterKdf(prf, counter(8), counter(8)),
      counterKdf(prf, counter(8), count(8)),
      counterKdf(prf, counter(8), length(32, 3)),
      counterKdf(prf, counter(8), length(72, 1)),
      counterKdf(prf, counter(8), part(9)),
      counterKdf(prf, counter(8), bytes(Buffer.alloc(4097))),
      counterKdf(CKM.SHA256, counter(8)),
      feedbackKdf(prf, nothing, count(8)),
      feedbackKdf(prf, nothing, counter(8)),
      feedbackKdf(prf, Buffer.alloc(4097), previous),
      kdf(counting, prf, [counter(8)], { additionalKeys: 1 }),
      kdf(feeding, prf, [previous], { additionalKeys: 1 }),
      mech(counting),
    ]) {
      await refused(mechanism, 'CKR_MECHANISM_PARAM_INVALID');
    }
    await refused(counterKdf(prf, counter(8)), 'CKR_KEY_TYPE_INCONSISTENT', aes);
    await refused(counterKdf(CKM.AES_CMAC, counter(8)), 'CKR_KEY_TYPE_INCONSISTENT', key);
    await expect(
      call.derive(counterKdf(prf, counter(8)), key, [CKA.CLASS, CKO.SECRET_KEY], [CKA.KEY_TYPE, CKK.GENERIC_SECRET]),
    ).rejects.toThrow('CKR_TEMPLATE_INCOMPLETE');
  });
});
