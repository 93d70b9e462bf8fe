// A node dies after it has created an object for a database and before its answer arrives: the
// agent sends the call to another node, which returns the created object. Nothing is created twice,
// and the database sees a successful call.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { tdeRoutes } from '../../server/contract/tde.ts';
import { type AnswerGate, openAnswerGate } from '../support/answer-gate.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Answer, Database } from '../support/database.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';

let fleet: TestFleet;
let gate: AnswerGate;
let database: Database;
let application: RegisteredApplication;

beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  const one = fleet.member('one');
  await untilActive(fleet, one, ['one', 'two']);
  application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  gate = await openAnswerGate(join(one.folder, 'dke-data'));
  gate.sendTo(one.server.port);
  // Enough time for a busy machine: the call must succeed within its deadline, however long that
  // is.
  const times = 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n';
  database = fleet.database('erp', application, times, gate.port);
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
});
afterAll(async () => {
  await fleet?.end();
  await gate?.close();
});

const sql = (text: string): string => fleet.postgres.run(fleet.place.database, text);
const base64 = (label: string): string => Buffer.from(label).toString('base64');
const newLabel = (): string => `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;

/**
 * Lets `victim` carry out a call, kills it after the commit, and returns the result that the
 * database saw.
 */
const killedAfterCommit = async (
  victim: FleetMember,
  other: FleetMember,
  route: keyof typeof tdeRoutes,
  call: () => Promise<Answer>,
  committed: () => boolean,
): Promise<Answer> => {
  gate.sendTo(victim.server.port);
  gate.keepAnswers(new RegExp(`${tdeRoutes[route].path.replace(':handle', '\\d+')}$`));
  const answer = call();
  await until('the commit', async () => {
    expect(gate.kept.filter((status) => status !== 200)).toEqual([]);
    return committed() ? true : undefined;
  });
  gate.sendTo(other.server.port);
  await victim.stop('SIGKILL');
  gate.end();
  const seen = await answer;
  await victim.start();
  await untilActive(fleet, other, ['one', 'two']);
  return seen;
};
const pairs = (): readonly (readonly [FleetMember, FleetMember])[] => {
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  return [
    [one, two],
    [two, one],
  ];
};
const liveOf = (label: string): string =>
  sql(`select count(*) from tde_objects where label = '${base64(label)}' and destroyed_at is null`);

test('C_GenerateKey: there is one master key, and both nodes use it', async () => {
  for (const [victim, other] of pairs()) {
    const label = newLabel();
    const { rv, handle = 0 } = await killedAfterCommit(
      victim,
      other,
      'generateKey',
      () => database.call('generate', { label }),
      () => liveOf(label) === '1',
    );
    expect(rv).toBe('CKR_OK');
    expect(liveOf(label)).toBe('1');
    expect((await database.call('find', { label })).handles).toEqual([handle]);
    const key = await other.api.masterKey(application.application.id, label);
    expect(sql(`select count(*) from audit_events where kind = 'key.created' and subject_id = '${key.id}'`)).toBe('1');
    const [iv, data] = ['00'.repeat(16), '11'.repeat(32)];
    const sealed = await database.call('encrypt', { handle, iv, data });
    gate.sendTo(victim.server.port);
    expect(await database.call('decrypt', { handle, iv, data: sealed.data ?? '' })).toEqual({ rv: 'CKR_OK', data });
  }
});

test('C_CreateObject and C_SetAttributeValue are carried out once', async () => {
  const [[victim, other] = []] = pairs();
  if (victim === undefined || other === undefined) throw new Error('two nodes are needed');
  const label = newLabel();
  const made = await killedAfterCommit(
    victim,
    other,
    'createObject',
    () => database.call('import', { label, value: randomBytes(32).toString('hex') }),
    () => liveOf(label) === '1',
  );
  expect(made.rv).toBe('CKR_OK');
  expect((await database.call('find', { label })).handles).toEqual([made.handle]);
  const renamed = newLabel();
  const changed = await killedAfterCommit(
    other,
    victim,
    'updateObject',
    () => database.call('setLabel', { handle: made.handle ?? 0, label: renamed }),
    () => liveOf(renamed) === '1',
  );
  expect(changed.rv).toBe('CKR_OK');
  expect((await database.call('find', { label: renamed })).handles).toEqual([made.handle]);
  expect(
    sql(
      `select count(*) from audit_events where kind = 'object.updated' and details like '%"handle":${made.handle ?? 0}%'`,
    ),
  ).toBe('1');
});

test('C_DestroyObject says that it is done', async () => {
  const [, [victim, other] = []] = pairs();
  if (victim === undefined || other === undefined) throw new Error('two nodes are needed');
  const label = newLabel();
  const { handle = 0 } = await database.call('generate', { label });
  const { rv } = await killedAfterCommit(
    victim,
    other,
    'destroyObject',
    () => database.call('destroy', { handle }),
    () => liveOf(label) === '0',
  );
  expect(rv).toBe('CKR_OK');
  expect((await database.call('find', { label })).handles).toEqual([]);
});
