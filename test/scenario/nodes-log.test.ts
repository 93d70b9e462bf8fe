// The audit log as each node knows it, on PostgreSQL: a writer of the database who rewrites a
// record before its first checkpoint does not get it signed, by the node that wrote it or by one
// that has only read it, also when nodes are killed in the meantime.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type FleetMember, startFleet, type TestFleet, untilActive, untilShown } from '../support/fleet.ts';
import { quarantineCodeOf } from '../support/server-process.ts';

let fleet: TestFleet;
afterEach(() => fleet?.end());

/** Its hash, too: only the tree shows it. */
const rewriteNewest = (): void => {
  fleet.postgres.run(
    'dke',
    `update audit_events set actor_name = 'another', leaf_hash = sha256('another')
     where sequence = (select size from audit_head)`,
  );
};
const finding = (member: FleetMember) => member.api.call('GET', '/api/quarantine');
const confirm = async ({ api, server }: FleetMember): Promise<void> => {
  await api.call('POST', '/api/quarantine/confirm', { code: await quarantineCodeOf(server) });
  await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
};
const exported = async ({ api }: FleetMember): Promise<number> => (await api.send('GET', '/api/audit/export')).status;

test('a rewritten record is signed neither by the node that wrote it nor by another one, until an operator accepts the log', async () => {
  fleet = await startFleet(['one', 'two']);
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  expect(await exported(one)).toBe(200);
  await one.api.call('POST', '/api/vaults', { name: 'payments' });
  await untilShown(fleet, one);
  rewriteNewest();
  for (const member of [two, one]) {
    expect(await exported(member)).not.toBe(200);
    expect(await finding(member)).toMatchObject({
      ...{ quarantined: true, finding: 'changed' },
      differences: [{ what: expect.stringMatching(/^root hash of the first \d+ audit records$/) }],
    });
  }
  await confirm(one);
  await confirm(two);
  // What was accepted is what they know from then on.
  for (const member of [one, two]) {
    await member.api.call('POST', '/api/vaults', { name: `of ${member.name}` });
    expect(await exported(member)).toBe(200);
    expect(await finding(member)).toMatchObject({ quarantined: false });
  }
});

test('a record that was rewritten while no node ran is found by the next start of each', async () => {
  fleet = await startFleet(['one', 'two']);
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  await one.api.call('POST', '/api/vaults', { name: 'payments' });
  await untilShown(fleet, one);
  await one.stop('SIGKILL');
  await two.stop('SIGKILL');
  rewriteNewest();
  for (const member of [one, two]) {
    await member.start();
    expect(await finding(member)).toMatchObject({
      ...{ quarantined: true, finding: 'changed' },
      differences: [{ expectedIn: expect.stringContaining('position') }],
    });
  }
});

test('so is one that came with no change, from the next heartbeat on', async () => {
  fleet = await startFleet(['one', 'two']);
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  const size = (): number => Number(fleet.postgres.run('dke', 'select size from audit_head'));
  await untilShown(fleet, one);
  const before = size();
  expect((await one.api.send('GET', '/api/keys/export')).status).toBe(200);
  await expect.poll(size).toBeGreaterThan(before);
  /** What the file says, of which one place may be older. */
  const kept = ({ server }: FleetMember): number =>
    Math.max(
      ...[...readFileSync(join(server.dataDirectory, 'position'), 'latin1').matchAll(/"records":(\d+)/g)].map((found) =>
        Number(found[1]),
      ),
    );
  const newest = size();
  for (const member of [one, two]) await expect.poll(() => kept(member)).toBeGreaterThanOrEqual(newest);
  await one.stop('SIGKILL');
  await two.stop('SIGKILL');
  // Unless something was recorded since.
  expect(size()).toBe(newest);
  rewriteNewest();
  await one.start();
  expect(await finding(one)).toMatchObject({
    ...{ quarantined: true, finding: 'changed' },
    // A checkpoint may have been made in the meantime.
    differences: [{ expectedIn: expect.stringMatching(/position|root\.key\.checkpoint/) }],
  });
});
