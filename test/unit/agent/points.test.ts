// Points of elliptic curves, bare and in the OCTET STRING that the standard has for CKA_EC_POINT,
// with values that look like the other form: the X coordinate of one point in 256 on P-256 begins
// with 3f, and on P-384 with 5f, so that the bare point reads as an OCTET STRING (04, length) that
// ends where the point does. A public key of Ed25519 that begins with 04 1e is the same. The
// reference is Node's cryptography.
import { createECDH, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKD } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { InProcessAgent } from '../../support/in-process-agent.ts';
import { CKK, CKO } from '../../support/names.ts';
import { mech, startSession } from '../../support/session-calls.ts';
import { places } from '../../support/template.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const octetString = (bytes: Uint8Array): Buffer =>
  Buffer.concat([bytes.length < 0x80 ? Buffer.of(4, bytes.length) : Buffer.of(4, 0x81, bytes.length), bytes]);

interface CurveOfTest {
  readonly node: string;
  readonly oid: Buffer;
  readonly size: number;
  /**
   * Scalars whose points look wrapped, found by counting up from 1. On P-521 the first byte of X is
   * 0 or 1: there are none.
   */
  readonly lookWrapped: readonly number[];
}
const curves: readonly CurveOfTest[] = [
  { node: 'prime256v1', oid: hex('06082a8648ce3d030107'), size: 32, lookWrapped: [111, 1149, 1516] },
  { node: 'secp384r1', oid: hex('06052b81040022'), size: 48, lookWrapped: [94, 124, 367] },
  { node: 'secp521r1', oid: hex('06052b81040023'), size: 66, lookWrapped: [] },
];

const pairOf = ({ node, size }: CurveOfTest, scalar: number) => {
  const pair = createECDH(node);
  const bytes = Buffer.alloc(size);
  bytes.writeUInt32BE(scalar, size - 4);
  pair.setPrivateKey(bytes);
  return pair;
};

/** Points that look wrapped, and two others. */
const peersOf = (curve: CurveOfTest) =>
  [...curve.lookWrapped, 1, 2].map((scalar, i) => {
    const pair = pairOf(curve, scalar);
    if (i < curve.lookWrapped.length) expect(pair.getPublicKey()[1]).toBe(2 * curve.size - 1);
    return pair;
  });

const derived = async (agent: InProcessAgent, session: number, base: number, publicData: Uint8Array, size: number) => {
  const key = await agent.derive(
    session,
    mech(CKM.ECDH1_DERIVE, { kind: 'ecdh1', kdf: CKD.NULL, shared: Buffer.alloc(0), publicData }),
    base,
    [CKA.CLASS, CKO.SECRET_KEY],
    [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
    [CKA.VALUE_LEN, size],
    [CKA.SENSITIVE, false],
    [CKA.EXTRACTABLE, true],
  );
  return (await agent.read(session, key, CKA.VALUE)).values[0];
};

describe.each(places)('with a %s key', (_where, token) => {
  test.each(curves)('ECDH on $node takes every point of a peer, bare and wrapped', async (curve) => {
    const { agent, session } = await startSession();
    const own = pairOf(curve, 4711);
    const base = await agent.create(
      session,
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.EC],
      [CKA.EC_PARAMS, curve.oid],
      [CKA.VALUE, own.getPrivateKey()],
      [CKA.DERIVE, true],
      [CKA.TOKEN, token],
    );
    for (const peer of peersOf(curve)) {
      const point = peer.getPublicKey();
      const secret = own.computeSecret(point);
      for (const form of [point, octetString(point)])
        expect(await derived(agent, session, base, form, curve.size)).toEqual(secret);
    }
  });

  test.each(curves)('a public key on $node is imported with either form of each point', async (curve) => {
    const { agent, session } = await startSession();
    for (const pair of peersOf(curve)) {
      const point = pair.getPublicKey();
      for (const form of [point, octetString(point)]) {
        const object = await agent.create(
          session,
          [CKA.CLASS, CKO.PUBLIC_KEY],
          [CKA.KEY_TYPE, CKK.EC],
          [CKA.EC_PARAMS, curve.oid],
          [CKA.EC_POINT, form],
          [CKA.TOKEN, token],
        );
        expect((await agent.read(session, object, CKA.EC_POINT)).values[0]).toEqual(octetString(point));
      }
    }
  });

  test('a public key of Ed25519 that begins like an OCTET STRING verifies', async () => {
    // Found by counting seeds up from 0.
    const seed = Buffer.alloc(32);
    seed.writeUInt32BE(11_538, 28);
    const key = createPrivateKey({
      key: Buffer.concat([hex('302e020100300506032b657004220420'), seed]),
      format: 'der',
      type: 'pkcs8',
    });
    const point = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(12);
    expect(point.subarray(0, 2)).toEqual(hex('041e'));
    const { agent, session } = await startSession();
    const data = Buffer.from('signed elsewhere');
    for (const form of [point, octetString(point)]) {
      const object = await agent.create(
        session,
        [CKA.CLASS, CKO.PUBLIC_KEY],
        [CKA.KEY_TYPE, CKK.EC_EDWARDS],
        [CKA.EC_PARAMS, hex('06032b6570')],
        [CKA.EC_POINT, form],
        [CKA.VERIFY, true],
        [CKA.TOKEN, token],
      );
      await agent.call('C_VerifyInit', { session, mechanism: mech(CKM.EDDSA), key: object });
      expect(await agent.rv('C_Verify', { session, data, signature: sign(null, data, key) })).toBe('CKR_OK');
    }
  });
});
