// Several nodes on one PostgreSQL: each may change everything, and none continues to use what
// another one has revoked.
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { envelopeType, instanceText, packEnvelope } from '../../server/contract/tde.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive, untilShown } from '../support/fleet.ts';
import { type HalfRequest, openHalfRequest } from '../support/half-request.ts';
import { until } from '../support/host.ts';
import { instance, masterKey } from '../support/open-service.ts';
import { startServerProcess } from '../support/server-process.ts';
import { callTdeRoute, Refused } from '../support/tde-route.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { requestMetadata, signXksCall } from '../support/xks-client.ts';

let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
let dke: (...args: string[]) => ReturnType<typeof runCommand>;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  one = fleet.member('one');
  two = fleet.member('two');
  await untilActive(fleet, one, ['one', 'two']);
  const token = join(fleet.folder, 'token');
  writeFileSync(token, fleet.token, { mode: 0o600 });
  const environment = { DKE_SERVER: one.server.url, DKE_CA_FILE: fleet.caFile, DKE_TOKEN_FILE: token };
  dke = (...args) => runCommand(args, { environment, cwd: fleet.folder });
});
afterAll(() => fleet?.end());

const siteOf = (member: FleetMember) => ({ api: member.api, server: member.server });
const plain = randomBytes(32);

/** A change by one node, in force on every node when this resolves. */
const changeBy = async (member: FleetMember, path: string, method: 'POST' | 'DELETE' = 'POST'): Promise<void> => {
  const { status, headers, text } = await member.api.send(method, path);
  if (status > 299) throw new Error(text);
  // On a busy machine, a node may not wait long enough for the others: then the answer names them.
  if (headers['x-dke-pending-nodes'] !== undefined) await untilShown(fleet, member);
};

test('nodes know each other, and the command shows them', async () => {
  const listed = async () => {
    const { code, stdout } = await dke('node', 'list', '-o', 'json');
    expect(code).toBe(0);
    const { items } = JSON.parse(stdout) as { items: { name: string; state: string; self: boolean }[] };
    return items.map(({ name, state, self }) => [name, state, self]);
  };
  await expect.poll(listed).toEqual([
    ['one', 'active', true],
    ['two', 'active', false],
  ]);
  await expect.poll(async () => (await dke('node', 'show', 'two')).stdout).toContain('active');
  expect((await dke('node', 'show', 'three')).code).toBe(10);
});

test('what one node has made, the other serves at once, and refuses at once when it is taken away', async () => {
  const here = await createXksEndpoint(siteOf(one), 'cloud');
  const there: XksEndpoint = here.at(two.server);
  await untilShown(fleet, one);
  const sealed = await there.encrypt(plain);
  expect(sealed.status).toBe(200);
  expect((await here.decrypt(sealed.body)).body.plaintext).toBe(plain.toString('base64'));
  for (const [by, at] of [
    [one, there],
    [two, here],
  ] as const) {
    await changeBy(by, `/api/endpoints/${here.endpoint.id}/disable`);
    expect((await at.encrypt(plain)).status).toBe(400);
    await changeBy(by, `/api/endpoints/${here.endpoint.id}/enable`);
    expect((await at.encrypt(plain)).status).toBe(200);
  }
  await changeBy(one, `/api/keys/${here.endpoint.keyId}/disable`);
  expect((await there.encrypt(plain)).status).toBe(400);
  await changeBy(two, `/api/keys/${here.endpoint.keyId}/enable`);
  expect((await here.encrypt(plain)).status).toBe(200);
});

/**
 * A node's answer to the cloud about the fleet: the number of running nodes, and each other node's
 * name and state.
 */
const fleetOf = async (at: XksEndpoint): Promise<readonly [unknown, readonly string[]]> => {
  const { xksProxyFleetSize, ekmFleetDetails } = (await at.health()).body as {
    readonly xksProxyFleetSize?: number;
    readonly ekmFleetDetails?: readonly { readonly id: string; readonly healthStatus: string }[];
  };
  return [xksProxyFleetSize, (ekmFleetDetails ?? []).map(({ id, healthStatus }) => `${id} ${healthStatus}`).sort()];
};
const untilFleet = async (at: XksEndpoint, size: number, members: readonly string[]): Promise<void> => {
  const wanted = JSON.stringify([size, members]);
  let last = '';
  await until(wanted, async () => {
    last = JSON.stringify(await fleetOf(at));
    return last === wanted ? true : undefined;
  }).catch(() => expect(last).toBe(wanted));
};

test('no node uses a key whose vault another node has disabled, whatever it was loading', async () => {
  const groupId = await createGroup(one.api, 'vaults');
  const registered = await registerApplication(one.api, 'of the vaults', groupId);
  const { vaultId } = await one.api.call<{ vaultId: string }>('GET', `/api/tde/groups/${groupId}`);
  const door = { accessGuid: registered.accessGuid, appId: registered.application.appId };
  const handles = await Promise.all(
    Array.from({ length: 4 }, async (_, at) => {
      const made = await callTdeRoute(one.server, door, 'generateKey', masterKey(`vault ${at}`));
      return made.head.handle;
    }),
  );
  const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16).toString('base64') } as const;
  const use = (member: FleetMember, handle: number): Promise<string> =>
    callTdeRoute(member.server, door, 'encrypt', cbc, { handle, raw: plain }).then(
      () => 'used',
      (error: unknown) => (error instanceof Refused ? error.code : Promise.reject(error as Error)),
    );
  const all = () => Promise.all([one, two].flatMap((member) => handles.map((handle) => use(member, handle))));
  for (let round = 0; round < 3; round += 1) {
    let isChanged = false;
    const meanwhile = (async () => {
      while (!isChanged) await all();
    })();
    await changeBy(one, `/api/vaults/${vaultId}/disable`).finally(() => {
      isChanged = true;
    });
    await meanwhile;
    expect(new Set(await all())).toEqual(new Set(['key-disabled']));
    await changeBy(two, `/api/vaults/${vaultId}/enable`);
    expect(new Set(await all())).toEqual(new Set(['used']));
  }
});

describe.each(['HTTP/1.1', 'HTTP/2'] as const)(
  'a body over %s that comes after a change that was answered',
  (version) => {
    /** Opens requests at one node, makes the change at the other, and then sends the bodies. */
    const statusesAfter = async (
      open: () => Promise<HalfRequest>,
      method: 'POST' | 'DELETE',
      path: string,
    ): Promise<readonly [before: number, after: number]> => {
      const [early, late] = [await open(), await open()];
      try {
        const before = await early.finish();
        await changeBy(two, path, method);
        return [before, await late.finish()];
      } finally {
        early.close();
        late.close();
      }
    };

    test.each(['disable', 'credential'] as const)('of a cloud: %s', async (what) => {
      const { configuration, endpoint } = await createXksEndpoint(siteOf(one), `late ${what} ${version}`);
      const body = Buffer.from(
        JSON.stringify({
          requestMetadata: requestMetadata(),
          plaintext: plain.toString('base64'),
          encryptionAlgorithm: 'AES_GCM',
        }),
      );
      const open = async (): Promise<HalfRequest> => {
        const target = `/keys/${endpoint.keyId}/encrypt`;
        const signed = await signXksCall({ server: one.server, configuration }, target, body.toString());
        return openHalfRequest(version, { server: one.server, ...signed, body });
      };
      const { credentials } = await one.api.call<Endpoint>('GET', `/api/endpoints/${endpoint.id}`);
      const statuses =
        what === 'disable'
          ? await statusesAfter(open, 'POST', `/api/endpoints/${endpoint.id}/disable`)
          : await statusesAfter(open, 'DELETE', `/api/endpoints/${endpoint.id}/credentials/${credentials[0]?.id}`);
      expect(statuses[0]).toBe(200);
      expect(statuses[1]).toBeGreaterThanOrEqual(400);
      expect(statuses[1]).toBeLessThan(500);
    });

    test.each(['disable', 'access GUID'] as const)('of a database: %s', async (what) => {
      const name = `late-${what === 'disable' ? 'a' : 'b'}-${version.replace(/\W/g, '')}`;
      const group = await createGroup(one.api, name);
      const { accessGuid, application, config, record } = await registerApplication(one.api, name, group);
      const open = (): Promise<HalfRequest> =>
        openHalfRequest(version, {
          server: one.server,
          path: `${new URL(config.server_url).pathname}/info`,
          headers: {
            authorization: `Bearer ${accessGuid}`,
            'content-type': envelopeType,
            'x-dke-instance': instanceText(instance),
          },
          body: Buffer.from(packEnvelope({})),
        });
      const path = `/api/tde/applications/${application.id}`;
      // The last one is not removed.
      await one.api.call('POST', `${path}/access-guids`);
      const statuses =
        what === 'disable'
          ? await statusesAfter(open, 'POST', `${path}/disable`)
          : await statusesAfter(open, 'DELETE', `${path}/access-guids/${record.id}`);
      expect(statuses[0]).toBe(200);
      expect(statuses[1]).toBeGreaterThanOrEqual(400);
      expect(statuses[1]).toBeLessThan(500);
    });
  },
);

test('GetHealthStatus lists the nodes, on each node', async () => {
  const here = await createXksEndpoint(siteOf(one), 'fleet');
  for (const { server } of [one, two]) await untilFleet(here.at(server), 2, ['one ACTIVE', 'two ACTIVE']);
});

test('each node grants an endpoint its full rate', async () => {
  const here = await createXksEndpoint(siteOf(one), 'rated');
  const { id, settings } = here.endpoint;
  const rate = { perSecond: 1, burst: 1 };
  await one.api.call('PUT', `/api/endpoints/${id}/settings`, { ...settings, rate });
  await untilShown(fleet, one);
  await until('the end of its rate on one node', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => here.encrypt(plain)));
    return answers.some(({ status }) => status === 429) ? true : undefined;
  });
  expect((await here.at(two.server).encrypt(plain)).status).toBe(200);
});

test('nodes that write at once keep one audit log, and it verifies', async () => {
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, at) =>
      (at % 2 === 0 ? one : two).api.call<Vault>('POST', '/api/vaults', { name: `at once ${at}` }),
    ),
  );
  expect(new Set(made.map(({ id }) => id)).size).toBe(60);
  const log = JSON.parse((await dke('audit', 'log', '-o', 'json')).stdout) as { verifierKey: string };
  expect((await dke('audit', 'export', '--out', 'audit.ndjson')).code).toBe(0);
  expect((await dke('audit', 'verify', 'audit.ndjson', '--key', log.verifierKey)).code).toBe(0);
});

test('a stopped node is named in every answer to a change, until it continues', async () => {
  const here = await createXksEndpoint(siteOf(one), 'stands-still');
  const path = `/api/endpoints/${here.endpoint.id}`;
  const watched = await createXksEndpoint(siteOf(one), 'watched');
  const application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  const database = fleet.database('erp', application, 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n');
  const label = 'ORACLE.TDE.HSM.MK.06AB';
  expect([await database.call('open', { pin: 'x' }), await database.call('generate', { label })]).toMatchObject([
    { rv: 'CKR_OK' },
    { rv: 'CKR_OK' },
  ]);
  const master = await one.api.masterKey(application.application.id, label);
  two.server.child.kill('SIGSTOP');
  try {
    const { headers, text } = await one.api.send('POST', `${path}/disable`);
    expect(JSON.parse(text)).toMatchObject({ state: 'disabled', pendingNodes: ['two'] });
    expect(headers['x-dke-pending-nodes']).toBe('two');
    const disabled = await dke('key', 'disable', here.endpoint.keyId);
    expect([disabled.code, disabled.stderr]).toEqual([0, expect.stringContaining('not confirmed it: two')]);
    await until('it to be silent', async () =>
      (await fleet.nodes(one)).some(({ name, state }) => name === 'two' && state === 'offline') ? true : undefined,
    );
    // Silent for longer than changes wait: it is named all the same, as long as it may use keys.
    expect(JSON.parse((await dke('node', 'show', 'two', '-o', 'json')).stdout)).toMatchObject({
      usesKeysUntil: expect.any(String),
    });
    await untilFleet(watched, 1, ['one ACTIVE', 'two UNAVAILABLE']);
    const keyPath = `/api/tde/applications/${application.application.id}/master-keys/${master.id}`;
    const destroyed = await one.api.send('POST', `${keyPath}/destroy`, { confirm: master.name });
    expect([destroyed.status, destroyed.headers['x-dke-pending-nodes']]).toEqual([200, 'two']);
    // So does a repeat, which finds it destroyed.
    const again = await one.api.send('POST', `${keyPath}/destroy`, { confirm: master.name });
    expect(again.headers['x-dke-pending-nodes']).toBe('two');
  } finally {
    two.server.child.kill('SIGCONT');
  }
  await until('the other node to show it', async () =>
    (await here.at(two.server).encrypt(plain)).status === 400 ? true : undefined,
  );
  await untilFleet(watched, 2, ['one ACTIVE', 'two ACTIVE']);
  await until('a change that both confirm', async () => {
    await one.api.call('POST', `${path}/enable`);
    const { headers, text } = await one.api.send('POST', `${path}/disable`);
    if (headers['x-dke-pending-nodes'] !== undefined) return undefined;
    expect(JSON.parse(text)).not.toHaveProperty('pendingNodes');
    return true;
  });
});

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');
test.runIf(chromiumPath !== null)(
  'the console says on every page which node did not confirm a change, until it was read',
  async () => {
    const eyes = await openConsoleBrowser(one.server.url, chromiumPath ?? '');
    try {
      const [, page] = await eyes.open();
      await page.goto('/vaults');
      await page.getByRole('button', { name: 'Use a token' }).click();
      await page.getByLabel('Administrator token').fill(fleet.token);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      const create = page.getByRole('button', { name: 'Create vault' });
      await create.first().click();
      const form = page.getByRole('dialog');
      await form.getByLabel('Name').fill('not confirmed');
      two.server.child.kill('SIGSTOP');
      await form.getByRole('button', { name: 'Create vault' }).click();
      const notice = page.getByRole('alert').getByText('not confirmed by two');
      await notice.waitFor();
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Keys', exact: true }).click();
      await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
      await notice.waitFor();
      await page.getByRole('button', { name: 'Dismiss the warning about nodes' }).click();
      await notice.waitFor({ state: 'detached' });
      expect(eyes.faults).toEqual([]);
    } finally {
      two.server.child.kill('SIGCONT');
      await eyes.close();
    }
    await untilActive(fleet, one, ['one', 'two']);
  },
);

test('a draining node says so at once, and continues when it is told to, or starts again', async () => {
  const asked = await createXksEndpoint(siteOf(one), 'drained');
  const health = async (): Promise<number> => (await two.api.send('GET', '/health')).status;
  expect((await dke('node', 'drain', 'two')).code).toBe(0);
  await until('bad health', async () => ((await health()) === 503 ? true : undefined));
  expect((await one.api.send('GET', '/health')).status).toBe(200);
  await untilFleet(asked, 1, ['one ACTIVE', 'two DEGRADED']);
  expect((await dke('node', 'resume', 'two')).code).toBe(0);
  await until('good health', async () => ((await health()) === 200 ? true : undefined));
  // Its last answer was good.
  const { id } = (await fleet.nodes(two)).find(({ self }) => self) ?? {};
  expect((await asked.at(two.server).health()).status).toBe(200);
  await two.api.call('POST', `/api/nodes/${id}/drain`);
  // Clouds get the same answer, before another caller has asked for the health.
  expect((await asked.at(two.server).health()).status).toBe(503);
  expect(await health()).toBe(503);
  await two.stop();
  await two.start();
  await until('good health', async () => ((await health()) === 200 ? true : undefined));
  await untilActive(fleet, one, ['one', 'two']);
});

test('duties go over to another node when the one that had them is killed', async () => {
  const owner = async (): Promise<FleetMember | undefined> => {
    for (const member of [one, two]) {
      const own = (await fleet.nodes(member)).find(({ self }) => self);
      if (own?.duties.includes('erasure') === true) return member;
    }
    return undefined;
  };
  const before = await until('a duty', owner);
  const other = before === one ? two : one;
  // Every node has the owner of each duty: all answers agree.
  await until('the same word of both', async () => {
    const byName = async (member: FleetMember) =>
      (await fleet.nodes(member)).map(({ name, duties }) => [name, duties.toSorted()] as const).sort();
    const [seen, seenThere] = [await byName(before), await byName(other)];
    const held = seen.flatMap(([, duties]) => duties);
    return held.length === 6 && JSON.stringify(seen) === JSON.stringify(seenThere) ? true : undefined;
  });
  const asked = (await createXksEndpoint(siteOf(other), 'after a death')).at(other.server);
  await before.stop('SIGKILL');
  await untilFleet(asked, 1, [`${other.name} ACTIVE`, `${before.name} UNAVAILABLE`].sort());
  await until('the duties', async () =>
    (await fleet.nodes(other)).find(({ self }) => self)?.duties.length === 6 ? true : undefined,
  );
  // Changes continue, and say that the killed node did not answer.
  const group = await createGroup(other.api, 'after a kill');
  await registerApplication(other.api, 'after a kill', group);
  await before.start();
  await untilActive(fleet, other, ['one', 'two']);
});

test('two servers under one id are refused', async () => {
  const copy = join(fleet.folder, 'copy');
  mkdirSync(join(copy, 'dke-data'), { recursive: true, mode: 0o700 });
  for (const file of ['root.key', 'node'])
    copyFileSync(join(fleet.folder, 'one', 'dke-data', file), join(copy, 'dke-data', file));
  const { host, database } = fleet.place;
  const toml = `[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\n`;
  await expect(startServerProcess({ folder: copy, toml })).rejects.toThrow('another server runs as this node');
});
