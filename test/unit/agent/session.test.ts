// Sessions and login: PKCS#11 2.40, section 5.6.
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKS, CKU } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { startInProcess } from '../../support/in-process-agent.ts';
import { mech, startSession } from '../../support/session-calls.ts';

const pin = Buffer.from('"any:thing at all"');
const handshake = Buffer.alloc(0);
const reserved = Buffer.alloc(0);

describe('initialization', () => {
  test('nothing works before it, and it works once', async () => {
    const agent = await startInProcess();
    expect(await agent.rv('C_Initialize', { handshake, reservedPresent: false, reserved })).toBe(
      'CKR_CRYPTOKI_ALREADY_INITIALIZED',
    );
    await agent.call('C_Finalize', {});
    for (const name of ['C_Finalize', 'C_GetInfo'] as const) {
      expect(await agent.rv(name, {})).toBe('CKR_CRYPTOKI_NOT_INITIALIZED');
    }
    expect(await agent.rv('C_OpenSession', { slot: 0, flags: 4 })).toBe('CKR_CRYPTOKI_NOT_INITIALIZED');
    expect(await agent.rv('C_CloseSession', { session: 1 })).toBe('CKR_CRYPTOKI_NOT_INITIALIZED');
    await agent.call('C_Initialize', { handshake, reservedPresent: false, reserved });
    expect(await agent.rv('C_GetSessionInfo', { session: 1 })).toBe('CKR_SESSION_HANDLE_INVALID');
  });

  test('a library that lost its agent gets its sessions and its login back under the same handles', async () => {
    const agent = await startInProcess();
    await agent.call('C_Finalize', {});
    const hello = {
      config: '/etc/dke/pkcs11.toml',
      library: '1.0',
      pid: 1,
      process: 'ora_lgwr',
      login: CKU.USER,
      sessions: [
        [7, 0, 6],
        [12, 0, 4],
      ],
    };
    await agent.call('C_Initialize', {
      handshake,
      reservedPresent: true,
      reserved: Buffer.from(`${JSON.stringify(hello)}\0`),
    });
    const info = (session: number) => agent.call('C_GetSessionInfo', { session });
    expect(await info(7)).toMatchObject({ state: CKS.RW_USER_FUNCTIONS, flags: 6 });
    expect(await info(12)).toMatchObject({ state: CKS.RO_USER_FUNCTIONS, flags: 4 });
    expect(await agent.open()).toBe(13);
  });

  test('a hello that is none is refused', async () => {
    const agent = await startInProcess();
    await agent.call('C_Finalize', {});
    expect(await agent.rv('C_Initialize', { handshake, reservedPresent: true, reserved: Buffer.from('{}') })).toBe(
      'CKR_ARGUMENTS_BAD',
    );
  });
});

describe('sessions', () => {
  test('there is slot 0 and no other', async () => {
    const agent = await startInProcess();
    expect(await agent.call('C_GetSlotList', { tokenPresent: true, slots: 4 })).toEqual([0]);
    expect(await agent.rv('C_OpenSession', { slot: 1, flags: 4 })).toBe('CKR_SLOT_ID_INVALID');
    expect(await agent.rv('C_GetTokenInfo', { slot: 1 })).toBe('CKR_SLOT_ID_INVALID');
  });
  test('are serial', async () => {
    const agent = await startInProcess();
    expect(await agent.rv('C_OpenSession', { slot: 0, flags: 2 })).toBe('CKR_SESSION_PARALLEL_NOT_SUPPORTED');
  });
  test('a closed one is gone, and its handle is not used again', async () => {
    const { agent, session } = await startSession();
    await agent.call('C_CloseSession', { session });
    expect(await agent.rv('C_CloseSession', { session })).toBe('CKR_SESSION_HANDLE_INVALID');
    expect(await agent.open()).not.toBe(session);
  });
  test('the token is the application: its name, and never write-protected', async () => {
    const agent = await startInProcess();
    const info = await agent.call('C_GetTokenInfo', { slot: 0 });
    expect(info.label).toMatch(/^application-\d+$/);
    expect(info.flags & 0x2).toBe(0);
    expect(info.flags & 0x40d).toBe(0x40d);
  });
});

describe('login', () => {
  test.each([Buffer.alloc(0), Buffer.from('x'), Buffer.alloc(2000, 0x41)])('takes any PIN', async (any) => {
    const agent = await startInProcess({ login: false });
    const session = await agent.open();
    expect(await agent.rv('C_Login', { session, userType: CKU.USER, pin: any })).toBe('CKR_OK');
  });
  test("is the application's: every session has it, also those opened later", async () => {
    const agent = await startInProcess({ login: false });
    const [first, second] = [await agent.open(), await agent.open(false)];
    const state = async (session: number) => (await agent.call('C_GetSessionInfo', { session })).state;
    expect([await state(first), await state(second)]).toEqual([CKS.RW_PUBLIC_SESSION, CKS.RO_PUBLIC_SESSION]);
    await agent.call('C_Login', { session: second, userType: CKU.USER, pin });
    const third = await agent.open();
    expect([await state(first), await state(second), await state(third)]).toEqual([
      CKS.RW_USER_FUNCTIONS,
      CKS.RO_USER_FUNCTIONS,
      CKS.RW_USER_FUNCTIONS,
    ]);
    expect(await agent.rv('C_Login', { session: first, userType: CKU.USER, pin })).toBe('CKR_USER_ALREADY_LOGGED_IN');
    await agent.call('C_Logout', { session: first });
    expect(await state(third)).toBe(CKS.RW_PUBLIC_SESSION);
    expect(await agent.rv('C_Logout', { session: first })).toBe('CKR_USER_NOT_LOGGED_IN');
  });
  test('ends with the last session', async () => {
    const agent = await startInProcess();
    await agent.call('C_CloseAllSessions', { slot: 0 });
    const session = await agent.open();
    expect((await agent.call('C_GetSessionInfo', { session })).state).toBe(CKS.RW_PUBLIC_SESSION);
  });
  test('there is no security officer', async () => {
    const { agent, session } = await startSession();
    expect(await agent.rv('C_Login', { session, userType: CKU.SO, pin })).toBe('CKR_USER_TYPE_INVALID');
    expect(await agent.rv('C_Login', { session, userType: 77, pin })).toBe('CKR_USER_TYPE_INVALID');
    expect(await agent.rv('C_Login', { session, userType: CKU.CONTEXT_SPECIFIC, pin })).toBe(
      'CKR_OPERATION_NOT_INITIALIZED',
    );
  });
  test('logout takes private session objects and what runs on them', async () => {
    const { agent, session } = await startSession();
    const key = await agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 16], [CKA.PRIVATE, true]);
    await agent.call('C_EncryptInit', { session, mechanism: mech(CKM.AES_ECB), key });
    await agent.call('C_Logout', { session });
    expect(
      await agent.rv('C_EncryptFinal', { session, lastEncryptedPart: { capacity: 0, space: Buffer.alloc(0) } }),
    ).toBe('CKR_OPERATION_NOT_INITIALIZED');
    await agent.call('C_Login', { session, userType: CKU.USER, pin });
    expect(await agent.rv('C_GetObjectSize', { session, object: key })).toBe('CKR_OBJECT_HANDLE_INVALID');
  });
});
