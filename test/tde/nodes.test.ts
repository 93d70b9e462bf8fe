// The heartbeat of a database with two nodes of the service: it asks one of them, and a key is
// disabled at the other. What was remembered for an Init does not outlive the change, and the use
// is refused at once.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createGroup, registerApplication, writeProviderConfig } from '../support/console-api.ts';
import { startFleet, type TestFleet, untilActive, untilShown } from '../support/fleet.ts';
import { endProcess, processesWith, until } from '../support/host.ts';
import { library as built } from '../support/pkcs11-host.ts';
import { Instance } from './instance.ts';
import { placeAgent, placeFile } from './library.ts';
import { labelOf, readProfile } from './profile.ts';
import { configure, createPayments, insertRow, rowsOf, statusOf, words } from './scenarios.ts';
import { canary, libraryOf } from './world.ts';

const profile = readProfile('12c-19c');
const sql = words(profile, false);
let fleet: TestFleet;
let database: Instance;
let socket: string;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  await untilActive(fleet, fleet.member('one'), ['one', 'two']);
});
afterAll(async () => {
  if (database !== undefined && database.state !== 'down') await database.die();
  for (const [pid] of processesWith(socket)) await endProcess(pid);
  await fleet?.end();
});

test('a key that is disabled at one node closes the keystore of a database at the other, and enabled it opens again', async () => {
  const [near, far] = [fleet.member('one'), fleet.member('two')];
  const registered = await registerApplication(near.api, 'erp', await createGroup(near.api, 'finance'));
  await untilShown(fleet, near);
  const folder = join(fleet.folder, 'database');
  mkdirSync(join(folder, 'traces'), { recursive: true });
  socket = join(folder, 'agent.sock');
  const address = new URL(registered.config.server_url);
  const text = registered.config.pkcs11_toml.replaceAll(address.origin, near.server.url);
  const config = { config: { ...registered.config, pkcs11_toml: text } };
  const own = { caFile: fleet.caFile, logDir: join(folder, 'log') };
  placeFile(built, libraryOf(folder));
  placeAgent(built, libraryOf(folder));
  database = new Instance({
    ...{ name: 'ERP', directory: folder, profile, release: '19c', cdb: false },
    host: {
      base: folder,
      traces: join(folder, 'traces'),
      environment: {
        DKE_PKCS11_CONF: writeProviderConfig(join(folder, 'pkcs11.toml'), config, own),
        DKE_PKCS11_SOCKET: socket,
        DKE_AGENT_LOG_DIR: own.logDir,
      },
    },
  });
  await configure(database, 'HSM');
  await database.execute(sql.open());
  await database.execute(sql.setKey());
  await createPayments(database);
  await insertRow(database, 'one');
  for (let period = 0; period < 3; period += 1) await database.advance(3);
  expect(await statusOf(database)).toEqual(['OPEN']);

  await untilShown(fleet, near);
  const { id } = await far.api.masterKey(registered.application.id, labelOf(profile, database.keyOf()));
  await far.api.call('POST', `/api/keys/${id}/disable`);
  await untilShown(fleet, far);
  // A new process unwraps, which is a use: nothing that is remembered spares that question.
  const client = database.connect();
  await expect(rowsOf(client, 'payments')).rejects.toThrow(/ORA-28/);
  await client.end();
  await until('the heartbeat that is refused', async () => {
    await database.advance(3);
    return (await statusOf(database)).includes('CLOSED') ? true : undefined;
  });
  expect(database.alertLog()).toMatch(/gen0: heartbeat failed: ORA-28407.*CKR_KEY_FUNCTION_NOT_PERMITTED/);

  await far.api.call('POST', `/api/keys/${id}/enable`);
  await untilShown(fleet, far);
  await database.execute(sql.open());
  expect(await rowsOf(database, 'payments')).toEqual([`${canary} one`]);
});
