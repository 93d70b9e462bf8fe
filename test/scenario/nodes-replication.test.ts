// The end of an old root key and copies of the database: while one of them could take over without
// the records that are sealed again, the old root key stays, and the service names the copy that it
// waits for.
import { afterEach, expect, test } from 'vitest';
import type { Status } from '../../server/contract/api/status-routes.ts';
import { openDatabaseRelay } from '../support/database-relay.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import type { PostgresServer } from '../support/postgresql.ts';
import { quarantineCodeOf } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

let fleet: TestFleet;
let standby: PostgresServer | undefined;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await fleet?.end();
  await standby?.remove();
  standby = undefined;
  for (const close of closing.splice(0)) await close();
});

const holdOf = async (member: FleetMember) => (await member.api.call<Status>('GET', '/api/status')).erasure.blockers;
const rootEpochs = async (from: FleetMember) =>
  (await fleet.nodes(from)).map(({ rootEpoch, hasOldRoot }) => ({ rootEpoch, hasOldRoot }));

test('a failover to a standby that lags behind a rotation of the root key leaves every key readable', async () => {
  fleet = await startFleet(['one', 'two'], { relay: true });
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  const line = await openDatabaseRelay(fleet.postgres.socket);
  closing.push(() => line.close());
  standby = await fleet.postgres.standby({ name: 'second', from: line });
  await untilActive(fleet, one, ['one', 'two']);
  // A starting node logs what it means.
  await two.stop();
  await two.start();
  expect(two.server.log()).toMatch(/"standby":"standby second".*a standby of the database is asynchronous/);
  await untilActive(fleet, one, ['one', 'two']);
  const endpoint = await createXksEndpoint({ api: one.api, server: one.server }, 'cloud');
  const plain = Buffer.alloc(32, 7);
  const sealed = (await endpoint.encrypt(plain)).body;
  await until('the standby to have it', async () => {
    const behind = fleet.postgres.run(
      'postgres',
      'select flush_lsn < pg_current_wal_flush_lsn() from pg_stat_replication',
    );
    return behind === 'f' ? true : undefined;
  });

  line.swallow();
  await one.api.call('POST', '/api/root/rotate', {});
  // Only one of them has the duty.
  await until('the wait for the standby, on both nodes', async () => {
    for (const member of [one, two])
      if ((await holdOf(member))?.standbys.includes('standby second') !== true) return undefined;
    return true;
  });
  for (const { api } of [one, two])
    expect(await api.call('GET', '/api/root')).toMatchObject({ epoch: 2, previousEpoch: 1 });

  await fleet.postgres.stop('SIGQUIT');
  await standby.promote();
  fleet.relay.moveTo(standby.socket);
  for (const member of [one, two]) {
    await member.stop('SIGKILL');
    await member.start();
  }
  for (const { server, api } of [one, two]) {
    const { finding } = await api.call<{ finding: string | null }>('GET', '/api/quarantine');
    if (finding !== null) {
      const code = await quarantineCodeOf(server);
      await api.call('POST', '/api/quarantine/confirm', { code });
    }
  }
  for (const { server } of [one, two])
    expect((await endpoint.at(server).decrypt(sealed)).body.plaintext).toBe(plain.toString('base64'));
  // No copy lags: the started run completes.
  await one.api.call('POST', '/api/root/rotate', {});
  await until('the rotation', async () =>
    (await rootEpochs(one)).every(({ hasOldRoot }) => !hasOldRoot) ? true : undefined,
  );
  for (const { server } of [one, two]) expect((await endpoint.at(server).decrypt(sealed)).status).toBe(200);
});
