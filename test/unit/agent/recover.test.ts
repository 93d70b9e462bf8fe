// Signatures with message recovery: PKCS#11 2.40, sections 5.11 and 5.12; mechanisms 2.1.6
// (CKM_RSA_PKCS). Node's own RSA is the other side.
import { constants, publicDecrypt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKF } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, room, rvOf } from '../../support/in-process-agent.ts';
import { mech, type Row, startSession } from '../../support/session-calls.ts';
import { places } from '../../support/template.ts';

const mechanism: Mechanism = mech(CKM.RSA_PKCS);
const data = Buffer.from('what was signed comes out again');

const start = async (token: boolean, privateRows: Row[] = [[CKA.SIGN_RECOVER, true]]) => {
  const call = await startSession();
  const on: Row = [CKA.TOKEN, token];
  const publicRows: Row[] = [on, [CKA.MODULUS_BITS, 2048], [CKA.VERIFY_RECOVER, true]];
  return { ...call, ...(await call.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, publicRows, [on, ...privateRows])) };
};

const sign = async (agent: InProcessAgent, session: number, input: Uint8Array, capacity: number | null = 256) => {
  const signature = room(capacity);
  return given(signature, await agent.call('C_SignRecover', { session, data: input, signature }));
};
const recover = async (
  agent: InProcessAgent,
  session: number,
  signature: Uint8Array,
  capacity: number | null = 256,
) => {
  const out = room(capacity);
  return given(out, await agent.call('C_VerifyRecover', { session, signature, data: out }));
};

describe.each(places)('with a pair of the %s', (_where, token) => {
  test('what is signed is recovered, here and by others', async () => {
    const { agent, session, publicKey, privateKey, node } = await start(token);
    await agent.call('C_SignRecoverInit', { session, mechanism, key: privateKey });
    const signature = (await sign(agent, session, data)) as Buffer;
    const key = await node(publicKey);
    expect(publicDecrypt({ key, padding: constants.RSA_PKCS1_PADDING }, signature)).toEqual(data);
    await agent.call('C_VerifyRecoverInit', { session, mechanism, key: publicKey });
    expect(await recover(agent, session, signature)).toEqual(data);
    // C_SignRecover makes the same signature as C_Sign, so C_Verify accepts it.
    await agent.call('C_VerifyInit', { session, mechanism, key: publicKey });
    expect(await agent.rv('C_Verify', { session, data, signature })).toBe('CKR_OK');
  });

  test('a length query and a buffer that is too small keep the operation; the result ends it', async () => {
    const { agent, session, publicKey, privateKey } = await start(token);
    await agent.call('C_SignRecoverInit', { session, mechanism, key: privateKey });
    expect(await sign(agent, session, data, null)).toBe(256);
    expect(await sign(agent, session, data, 255)).toBe(256);
    const signature = (await sign(agent, session, data)) as Buffer;
    expect(await rvOf(sign(agent, session, data))).toBe('CKR_OPERATION_NOT_INITIALIZED');
    await agent.call('C_VerifyRecoverInit', { session, mechanism, key: publicKey });
    expect(await recover(agent, session, signature, null)).toBe(data.length);
    expect(await recover(agent, session, signature, data.length - 1)).toBe(data.length);
    expect(await recover(agent, session, signature, data.length)).toEqual(data);
    expect(await rvOf(recover(agent, session, signature))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test('what does not fit, or is not a signature, is named and ends the operation', async () => {
    const { agent, session, publicKey, privateKey } = await start(token);
    await agent.call('C_SignRecoverInit', { session, mechanism, key: privateKey });
    expect(await rvOf(sign(agent, session, Buffer.alloc(246)))).toBe('CKR_DATA_LEN_RANGE');
    expect(await rvOf(sign(agent, session, data))).toBe('CKR_OPERATION_NOT_INITIALIZED');
    for (const [wrong, rv] of [
      [Buffer.alloc(255, 1), 'CKR_SIGNATURE_LEN_RANGE'],
      [Buffer.alloc(256, 1), 'CKR_SIGNATURE_INVALID'],
    ] as const) {
      await agent.call('C_VerifyRecoverInit', { session, mechanism, key: publicKey });
      expect(await rvOf(recover(agent, session, wrong))).toBe(rv);
      expect(await rvOf(recover(agent, session, wrong))).toBe('CKR_OPERATION_NOT_INITIALIZED');
    }
  });

  test('each half does its part, if it may', async () => {
    const { agent, session, publicKey, privateKey } = await start(token, []);
    const init = (key: number) => agent.rv('C_SignRecoverInit', { session, mechanism, key });
    expect(await init(publicKey)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    expect(await init(privateKey)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    await agent.set(session, privateKey, [CKA.SIGN_RECOVER, true]);
    expect(await init(privateKey)).toBe('CKR_OK');
    expect(await agent.rv('C_VerifyRecoverInit', { session, mechanism, key: privateKey })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
    expect(await agent.rv('C_VerifyRecoverInit', { session, mechanism, key: 7777 })).toBe('CKR_KEY_HANDLE_INVALID');
  });

  test('other mechanisms have no recovery, and this one has no parameter', async () => {
    const { agent, session, publicKey, privateKey } = await start(token);
    const rv = (type: number, parameter: Mechanism['parameter'] = null) =>
      agent.rv('C_SignRecoverInit', { session, mechanism: mech(type, parameter), key: privateKey });
    expect(await rv(CKM.SHA256_RSA_PKCS)).toBe('CKR_MECHANISM_INVALID');
    expect(await rv(CKM.RSA_PKCS_PSS)).toBe('CKR_MECHANISM_INVALID');
    expect(await rv(CKM.RSA_X_509)).toBe('CKR_MECHANISM_INVALID');
    const bytes = { kind: 'bytes', bytes: Buffer.of(1) } as const;
    expect(await rv(CKM.RSA_PKCS, bytes)).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(
      await agent.rv('C_VerifyRecoverInit', { session, mechanism: { ...mechanism, parameter: bytes }, key: publicKey }),
    ).toBe('CKR_MECHANISM_PARAM_INVALID');
  });

  test('one operation of each kind; a null mechanism and C_SessionCancel end it', async () => {
    const { agent, session, publicKey, privateKey } = await start(token);
    for (const [init, key, flag] of [
      ['C_SignRecoverInit', privateKey, CKF.SIGN_RECOVER],
      ['C_VerifyRecoverInit', publicKey, CKF.VERIFY_RECOVER],
    ] as const) {
      expect(await agent.rv(init, { session, mechanism, key })).toBe('CKR_OK');
      expect(await agent.rv(init, { session, mechanism, key })).toBe('CKR_OPERATION_ACTIVE');
      expect(await agent.rv(init, { session, mechanism: null, key: 0 })).toBe('CKR_OK');
      expect(await agent.rv(init, { session, mechanism, key })).toBe('CKR_OK');
      expect(await agent.rv('C_SessionCancel', { session, flags: flag })).toBe('CKR_OK');
      expect(await agent.rv(init, { session, mechanism, key })).toBe('CKR_OK');
    }
    await agent.call('C_Logout', { session });
    expect(await rvOf(sign(agent, session, data))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });
});

test('a private key of the token that may not sign does not sign with recovery: to the service both are one', async () => {
  const { agent, session, privateKey } = await start(true, [
    [CKA.SIGN_RECOVER, true],
    [CKA.SIGN, false],
  ]);
  expect(await agent.rv('C_SignRecoverInit', { session, mechanism, key: privateKey })).toBe(
    'CKR_KEY_FUNCTION_NOT_PERMITTED',
  );
});
