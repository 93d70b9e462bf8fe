// A value that cannot be read is not found through shorter keys that begin with the same bytes: a
// key whose maker chooses its length has 128 bits, or may be read. Keys of the session (the agent
// checks) and of the token (the service does, too).
import { createHmac } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKD, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { mayHaveLength } from '../../../server/base/key-rules.ts';
import {
  clear,
  hkdfWith,
  iv,
  mech,
  noDecrypt,
  onToken,
  p256,
  type Row,
  type SessionCalls,
  salted,
  secret,
  startSession,
} from '../../support/session-calls.ts';
import { counter, counterKdf } from '../../support/sp800-108.ts';

const generic = (size: number): Row[] => [
  [CKA.CLASS, CKO.SECRET_KEY],
  [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
  [CKA.VALUE_LEN, size],
];
const hidden: Row[] = [
  [CKA.SENSITIVE, true],
  [CKA.EXTRACTABLE, false],
];
const refused = 'CKR_KEY_SIZE_RANGE';

test('the rule is for keys that may not be read', () => {
  expect(mayHaveLength(15, { sensitive: false, extractable: true })).toBe(true);
  for (const sensitive of [true, false]) {
    expect(mayHaveLength(15, { sensitive, extractable: false })).toBe(false);
    expect(mayHaveLength(16, { sensitive, extractable: false })).toBe(true);
  }
  expect(mayHaveLength(15, { sensitive: true, extractable: true })).toBe(false);
});

describe.each([
  ['session', [CKA.TOKEN, false]],
  ['token', onToken],
] as const satisfies readonly (readonly [string, Row])[])('from a base of the %s', (_place, place) => {
  let call: SessionCalls;
  beforeAll(async () => {
    call = await startSession();
  });
  const base = (): Promise<number> =>
    call.create(
      [CKA.CLASS, CKO.SECRET_KEY],
      [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
      [CKA.VALUE, secret],
      [CKA.DERIVE, true],
      place,
    );
  const both = async (derive: (...rows: Row[]) => Promise<number>): Promise<void> => {
    for (const size of [1, 2, 15])
      for (const where of [[CKA.TOKEN, false], onToken] as Row[])
        await expect(derive(...generic(size), ...hidden, where), `${size} bytes`).rejects.toThrow(refused);
    expect(await call.value(await derive(...generic(3), ...clear))).toHaveLength(3);
    expect(await derive(...generic(16), ...hidden)).toBeGreaterThan(0);
  };

  test.each([
    ['HKDF', hkdfWith(salted)],
    ['the counter mode of SP 800-108', counterKdf(CKM.SHA256_HMAC, counter(16))],
  ] as const)('%s derives no short key', async (_name, mechanism: Mechanism) => {
    const key = await base();
    await both((...rows) => call.derive(mechanism, key, ...rows));
  });

  test.each([
    ['no KDF', CKD.NULL],
    ['the KDF of X9.63', CKD.SHA256_KDF],
  ])('ECDH with %s agrees on no short key', async (_name, kdf) => {
    const { publicKey, privateKey } = await call.pair(
      CKM.EC_KEY_PAIR_GEN,
      [[CKA.EC_PARAMS, p256]],
      [[CKA.DERIVE, true], place],
    );
    const publicData = await call.bytes(publicKey, CKA.EC_POINT);
    const mechanism = mech(CKM.ECDH1_DERIVE, { kind: 'ecdh1', kdf, shared: Buffer.alloc(0), publicData });
    await both((...rows) => call.derive(mechanism, privateKey, ...rows));
  });

  test('AES-CBC, which does not tell how long a key is, unwraps no short one', async () => {
    const wrapping = await call.generate(place, noDecrypt, [CKA.WRAP, true], [CKA.UNWRAP, true]);
    const cbc = mech(CKM.AES_CBC, { kind: 'bytes', bytes: iv });
    const message = Buffer.from('sixteen bytes in');
    const ciphertext = await call.encrypt(cbc, wrapping, message);
    const unwrap = (...rows: Row[]) => call.unwrap(cbc, wrapping, ciphertext, ...rows);
    await both(unwrap);
    // How such a key revealed its byte: by its MAC, for each of 256 values.
    const first = await call.unwrap(cbc, wrapping, ciphertext, ...generic(1), ...clear, [CKA.SIGN, true]);
    const mac = createHmac('sha256', message.subarray(0, 1)).update('guess').digest();
    expect(await call.sign(mech(CKM.SHA256_HMAC), first, Buffer.from('guess'))).toEqual(mac);
  });
});
