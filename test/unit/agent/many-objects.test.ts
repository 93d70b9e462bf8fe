// A process with thousands of objects, sessions and operations. Work over all of them leaves the
// socket thread free for the calls of others in between. No time is measured here: while the long
// call is under way, calls of another process are answered.
import { expect, test } from 'vitest';
import { Accounts, defaultLimits } from '../../../provider/agent/sessions/user-limits.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { answeredDuring, mech, type Row, type SessionCalls, startSession } from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';

const many = 4_000;
const one = 1001;

const start = async () => {
  const accounts = new Accounts(defaultLimits, 1 << 20);
  return { own: await startSession(accounts.of(one)), other: await startSession(accounts.of(1002)), accounts };
};
const fill = async ({ agent }: SessionCalls, session: number): Promise<number> => {
  let last = 0;
  for (let i = 0; i < many; i++) {
    const rows = template([CKA.CLASS, CKO.DATA], [CKA.PRIVATE, true], [CKA.LABEL, Buffer.from(`label ${i}`)]);
    last = (await agent.call('C_CreateObject', { session, template: rows })) as number;
  }
  return last;
};
const init = ({ agent, session }: SessionCalls, ...rows: Row[]) =>
  agent.call('C_FindObjectsInit', { session, template: template([CKA.TOKEN, false], ...rows) });
const take = ({ agent, session }: SessionCalls) => agent.call('C_FindObjects', { session, objects: 2 * many });
const endSearch = ({ agent, session }: SessionCalls) => agent.call('C_FindObjectsFinal', { session });

test('calls of another process are answered during a search among many objects', async () => {
  const { own, other } = await start();
  await fill(own, own.session);
  // The first search also enters them into the index.
  expect(await answeredDuring(other, () => init(own, [CKA.LABEL, Buffer.from('label 17')]))).toBeGreaterThan(5);
  expect(await take(own)).toHaveLength(1);
  await endSearch(own);
  expect(await answeredDuring(other, () => init(own, [CKA.APPLICATION, Buffer.from('none')]))).toBeGreaterThan(5);
  expect(await take(own)).toEqual([]);
  await endSearch(own);
  expect(await answeredDuring(other, () => init(own, [CKA.CLASS, CKO.DATA]))).toBeGreaterThan(5);
  expect(await take(own)).toHaveLength(many);
});

test.each(['C_CloseSession', 'C_CloseAllSessions', 'C_Logout', 'C_Finalize'] as const)(
  'calls of another process are answered during %s with many objects, and nothing is left',
  async (name) => {
    const { own, other, accounts } = await start();
    const { agent } = own;
    const session = await agent.open();
    const last = await fill(own, session);
    const ends = {
      C_CloseSession: () => agent.call('C_CloseSession', { session }),
      C_CloseAllSessions: () => agent.call('C_CloseAllSessions', { slot: 0 }),
      C_Logout: () => agent.call('C_Logout', { session }),
      C_Finalize: () => agent.call('C_Finalize', {}),
    };
    // From the first moment of the end, none of the objects is found, although most still exist.
    const seen: string[] = [];
    const look = async (): Promise<void> => {
      if (name === 'C_CloseSession')
        seen.push(await agent.rv('C_GetObjectSize', { session: own.session, object: last }));
      if (name !== 'C_Logout') return;
      await agent.call('C_Login', { session, userType: 1, pin: Buffer.from('any') });
      seen.push(await agent.rv('C_GetObjectSize', { session, object: last }));
    };
    const slow = async (): Promise<void> => {
      const ended = ends[name]();
      await look();
      await ended;
    };
    expect(await answeredDuring(other, slow)).toBeGreaterThan(5);
    for (const rv of seen) expect(rv).toBe('CKR_OBJECT_HANDLE_INVALID');
    const next = await startSession(accounts.of(one));
    await fill(next, next.session);
  },
);

test('calls of another process are answered while thousands of sessions with operations end', async () => {
  const { own, other } = await start();
  for (let i = 0; i < many; i++) {
    const session = await own.agent.open();
    await own.agent.call('C_DigestInit', { session, mechanism: mech(CKM.SHA256) });
  }
  expect(await answeredDuring(other, () => own.agent.call('C_CloseAllSessions', { slot: 0 }))).toBeGreaterThan(5);
  const session = await own.agent.open();
  expect(await own.agent.rv('C_DigestInit', { session, mechanism: mech(CKM.SHA256) })).toBe('CKR_OK');
});

test('a search for two values of one attribute finds nothing', async () => {
  const { own } = await start();
  await own.create([CKA.CLASS, CKO.DATA], [CKA.LABEL, Buffer.from('a')]);
  await init(own, [CKA.LABEL, Buffer.from('a')], [CKA.LABEL, Buffer.from('a')]);
  expect(await take(own)).toHaveLength(1);
  await endSearch(own);
  await init(own, [CKA.LABEL, Buffer.from('a')], [CKA.LABEL, Buffer.from('b')]);
  expect(await take(own)).toEqual([]);
});
