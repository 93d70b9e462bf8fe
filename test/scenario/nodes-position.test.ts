// A node whose disk refuses the position of the database: it confirms nothing, makes no change, and
// says why. Keys are used as before, and the other node is not disturbed.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Status } from '../../server/contract/api/status-routes.ts';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import type { ApiAnswer } from '../support/console-api.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { openStrikes, type Strikes } from '../support/strikes.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

let folder: string;
let strikes: Strikes;
let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-position-'));
  chmodSync(folder, 0o777);
  strikes = openStrikes(folder);
  chmodSync(join(folder, 'strikes'), 0o666);
  fleet = await startFleet(['one', 'two'], {
    environmentOf: (name) => (name === 'two' ? strikes.environment : {}),
  });
  [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
});
afterAll(async () => {
  await fleet?.end();
  rmSync(folder, { recursive: true, force: true });
});

const diskOf = async ({ api }: FleetMember) =>
  (await api.call<Status>('GET', '/api/status')).health.checks.find(({ name }) => name === 'disk');
const problemOf = ({ status, text }: ApiAnswer) => {
  const { reason, title, detail = title } = JSON.parse(text) as { reason?: string; title?: string; detail?: string };
  return { status, reason, detail };
};

test('what cannot be kept is not confirmed, and nothing more is changed until it can', async () => {
  const call = await createXksEndpoint({ api: two.api, server: two.server }, 'watched');
  const plaintext = Buffer.from('of the cloud');
  const sealed = await call.encrypt(plaintext);
  const create = (at: FleetMember, name: string) => at.api.send('POST', '/api/vaults', { name });
  const namesAt = async ({ api }: FleetMember): Promise<readonly string[]> =>
    (await api.call<{ items: Vault[] }>('GET', '/api/vaults?limit=1000')).items.map(({ name }) => name);

  strikes.arm({ mode: 'fail-from', kinds: ['sync'], number: 1, error: 'EIO' });
  // Made, and said to be not confirmed: it is in the database, and on no disk of this node.
  expect(problemOf(await create(two, 'first'))).toMatchObject({ status: 503, reason: 'unconfirmed' });
  expect(await namesAt(one)).toContain('first');
  // From now on, refused before anything is changed.
  const refused = problemOf(await create(two, 'second'));
  expect(refused).toMatchObject({ status: 503, reason: undefined });
  expect(JSON.stringify(refused)).toContain('nothing was changed');
  expect(await namesAt(one)).not.toContain('second');
  await until('the node to say so', async () => ((await diskOf(two))?.healthy === false ? true : undefined));
  expect((await diskOf(two))?.detail).toContain('takes no changes');
  expect((await two.api.send('GET', '/health')).text).toBe('{"status":"degraded"}');
  // The other node is not disturbed, and keys are used at both.
  expect((await create(one, 'third')).status).toBe(201);
  expect(await namesAt(two)).toContain('third');
  expect((await call.decrypt(sealed.body)).body.plaintext).toBe(plaintext.toString('base64'));
  expect((await diskOf(one))?.healthy).toBe(true);

  expect(strikes.disarm().struck).toBeGreaterThan(0);
  await until('changes to be accepted again', async () =>
    (await create(two, 'fourth')).status === 201 ? true : undefined,
  );
  expect(await namesAt(one)).toContain('fourth');
  await until('the node to be healthy', async () =>
    (await two.api.send('GET', '/health')).text === '{"status":"healthy"}' ? true : undefined,
  );
});
