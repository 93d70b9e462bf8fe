// What a caller has given up after its deadline, and what came of it in the agent later, when the
// service had answered.
import { expect, test } from 'vitest';
import { parseHello } from '../../../provider/agent/sessions/hello.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { type InProcessAgent, room, startInProcess } from '../../support/in-process-agent.ts';
import { startSession } from '../../support/session-calls.ts';

const cbc = { type: CKM.AES_CBC, parameter: { kind: 'bytes', bytes: Buffer.alloc(16) } } as const;
const data = Buffer.alloc(16, 1);

const generate = (agent: InProcessAgent, session: number, token: boolean): Promise<number> =>
  agent.generate(
    session,
    CKM.AES_KEY_GEN,
    [CKA.VALUE_LEN, 32],
    [CKA.TOKEN, token],
    [CKA.LABEL, Buffer.from(`key ${token}`)],
  );

test('an Init that waits for the service begins nothing once another Init of its kind has come', async () => {
  const { agent, session } = await startSession();
  const token = await generate(agent, session, true);
  const own = await generate(agent, session, false);
  const release = agent.service.hold();
  const late = agent.rv('C_EncryptInit', { session, mechanism: cbc, key: token });
  expect(await agent.rv('C_EncryptInit', { session, mechanism: cbc, key: own })).toBe('CKR_OK');
  expect(await agent.rv('C_Encrypt', { session, data, encryptedData: room(16) })).toBe('CKR_OK');
  release();
  expect(await late).toBe('CKR_OPERATION_ACTIVE');
  expect(await agent.rv('C_Encrypt', { session, data, encryptedData: room(16) })).toBe('CKR_OPERATION_NOT_INITIALIZED');
  expect(await agent.rv('C_EncryptInit', { session, mechanism: cbc, key: own })).toBe('CKR_OK');
});

test('nor once the kind was cancelled', async () => {
  const { agent, session } = await startSession();
  const token = await generate(agent, session, true);
  const release = agent.service.hold();
  const late = agent.rv('C_DecryptInit', { session, mechanism: cbc, key: token });
  await agent.call('C_SessionCancel', { session, flags: 0x200 });
  release();
  expect(await late).toBe('CKR_OPERATION_ACTIVE');
  expect(await agent.rv('C_DecryptInit', { session, mechanism: cbc, key: token })).toBe('CKR_OK');
});

test('session objects of a process’s next connection have handles that the last one had not', async () => {
  const first = await startInProcess();
  const before = await generate(first, await first.open(), false);
  const hello = { config: '/x', library: '1.0', connection: 1, pid: 1, process: 'p', login: 1, sessions: [[1, 0, 6]] };
  await first.call('C_Finalize', {});
  const reserved = Buffer.from(`${JSON.stringify(hello)}\0`);
  expect(parseHello(reserved).connection).toBe(1);
  await first.call('C_Initialize', { handshake: Buffer.alloc(0), reservedPresent: true, reserved });
  const after = await generate(first, 1, false);
  expect(before).toBe(2 ** 31);
  expect(after).toBe(2 ** 32);
  expect(await first.rv('C_EncryptInit', { session: 1, mechanism: cbc, key: before })).toBe('CKR_KEY_HANDLE_INVALID');
});
