// Two nodes behind a TCP balancer while they and their database are restarted, killed and cut off:
// a cloud's signed requests and a database's calls continue, changes succeed or are refused with a
// reason, and acknowledged changes exist afterwards on both nodes. A phase ends when each kind of
// load has completed some more rounds, however long that takes.
import { randomBytes } from 'node:crypto';
import { Agent } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsoleApi, createGroup, openConsoleApi, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { callTdeRoute } from '../support/tde-route.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

/** A cloud's own client retries as well. */
const attempts = 4;
/** The number of rounds of a load in a phase. */
const rounds = 3;
/** Pause between two rounds, because only their continuation matters, not their number. */
const paceMs = 50;
/** How many of the ciphertexts are decrypted in the end, at most, on each node. */
const opened = 60;

let fleet: TestFleet;
let behind: ConsoleApi;
let endpoint: XksEndpoint;
let database: Database;
let applicationId: string;
let door: { readonly accessGuid: string; readonly appId: string };
/** The handle of the master key that is used all the time. */
let ofToken: number;
/** What a supervisor does: a node that has ended is started again. */
const restarts = new Map<FleetMember, Promise<void>>();
let supervising = true;

type Kind = 'cloud' | 'database' | 'changes';
const counts: Record<Kind, number> = { cloud: 0, database: 0, changes: 0 };
/** The counted results of each kind of load. */
const seen: Record<Kind, Map<string, number>> = { cloud: new Map(), database: new Map(), changes: new Map() };
const note = (kind: Kind, what: string): void => {
  seen[kind].set(what, (seen[kind].get(what) ?? 0) + 1);
};
const codeOf = (error: unknown): string => String((error as { readonly code?: unknown }).code ?? error);

const sealedByCloud: { readonly plaintext: string; readonly body: object }[] = [];
const lostByCloud: string[] = [];
/** What was acknowledged of keys; null where a change was not. */
const book: { readonly path: string; readonly state: string | null; readonly version: number | null }[] = [];
const destroyed: { readonly path: string; readonly handle: number }[] = [];

const agent = new Agent({ keepAlive: true, maxSockets: 4 });
const ask = (target: string, body: object, port = fleet.balancer.port) =>
  callXks(
    { server: { port, caFile: fleet.caFile }, configuration: endpoint.configuration },
    { target, body: { requestMetadata: requestMetadata(), encryptionAlgorithm: 'AES_GCM', ...body }, agent },
  );
const askAsCloud = async (target: string, body: object) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await ask(target, body);
      if (answer.status === 200) return answer.body;
      note('cloud', `status ${answer.status}`);
    } catch (error) {
      note('cloud', codeOf(error));
    }
    if (attempt === attempts) {
      lostByCloud.push(target);
      return undefined;
    }
  }
};
const pathOf = (what: string): string => `/keys/${endpoint.endpoint.keyId}/${what}`;

let running = true;
const cloudLoad = async (): Promise<void> => {
  for (; running; await pause(paceMs)) {
    const plaintext = randomBytes(32).toString('base64');
    const body = await askAsCloud(pathOf('encrypt'), { plaintext });
    if (body !== undefined) {
      sealedByCloud.push({ plaintext, body });
      const back = await askAsCloud(pathOf('decrypt'), body);
      if (back !== undefined && back.plaintext !== plaintext) lostByCloud.push('another plaintext');
    }
    counts.cloud += 1;
  }
};
const iv = '00'.repeat(16);
const databaseLoad = async (handles: readonly number[]): Promise<void> => {
  for (; running; await pause(paceMs)) {
    for (const handle of handles) {
      const data = randomBytes(32).toString('hex');
      const sealed = await database.call('encrypt', { handle, iv, data });
      note('database', sealed.rv);
      const back = await database.call('decrypt', { handle, iv, data: sealed.data ?? '' });
      note('database', back.data === data ? back.rv : `not decrypted: ${back.rv}`);
    }
    counts.database += 1;
  }
};
/** Answers the body when the change was acknowledged. */
const change = async <T>(path: string, body?: object): Promise<T | undefined> => {
  try {
    const { status, text } = await behind.send('POST', path, body);
    const answer = JSON.parse(text) as T & { readonly detail?: string };
    if (status >= 200 && status <= 299) {
      note('changes', 'made');
      return answer;
    }
    note('changes', `${status} ${answer.detail}`);
  } catch (error) {
    note('changes', codeOf(error));
  }
  return undefined;
};
const changeLoad = async (vaultId: string): Promise<void> => {
  for (let at = 0; running; at += 1, await pause(paceMs)) {
    const key = await change<{ id: string }>('/api/keys', { name: `key ${at}`, vaultId });
    if (key !== undefined) {
      const path = `/api/keys/${key.id}`;
      const rotated = await change(`${path}/rotate`);
      const disabled = await change(`${path}/disable`);
      book.push({
        path,
        state: disabled === undefined ? null : 'disabled',
        version: rotated === undefined ? null : 2,
      });
    }
    const label = `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
    const { rv, handle = 0 } = await database.call('generate', { label });
    note('changes', `generate ${rv}`);
    const master = rv === 'CKR_OK' ? await behind.masterKey(applicationId, label).catch(() => undefined) : undefined;
    if (master !== undefined) {
      const path = `/api/tde/applications/${applicationId}/master-keys/${master.id}`;
      if ((await change(`${path}/destroy`, { confirm: master.name })) !== undefined) destroyed.push({ path, handle });
    }
    counts.changes += 1;
  }
};

const supervise = (member: FleetMember): void => {
  member.server.child.once('exit', () => {
    if (!supervising) return;
    note('changes', 'a node ended');
    const again = async (): Promise<void> => {
      for (let runs = false; !runs && supervising; ) {
        // A node does not start while the database is unreachable.
        runs = await member.start().then(
          () => true,
          () => false,
        );
      }
      supervise(member);
    };
    restarts.set(member, again());
  });
};
/** Every node runs, and sees the other. */
const untilWhole = async (): Promise<void> => {
  while (restarts.size > 0)
    for (const [member, restart] of [...restarts]) {
      await restart;
      if (restarts.get(member) === restart) restarts.delete(member);
    }
  for (const member of fleet.members) await untilActive(fleet, member, ['one', 'two']);
};
/** Each of these kinds of load has completed some more rounds. */
const goOn = async (...kinds: readonly Kind[]): Promise<void> => {
  const goals = kinds.map((kind) => [kind, counts[kind] + rounds] as const);
  for (const [kind, goal] of goals)
    for (let last = counts[kind]; last < goal; last = counts[kind])
      await until(`a round of the ${kind}`, async () => (counts[kind] > last ? true : undefined), 120);
};
const made = (): number => seen.changes.get('made') ?? 0;
const untilChangesAreMade = async (): Promise<void> => {
  const before = made();
  await until('a change to be made', async () => (made() > before ? true : undefined), 120);
};
const nothingLost = (): void => {
  expect(lostByCloud).toEqual([]);
  expect([...seen.database.keys()]).toEqual(['CKR_OK']);
};

let load: readonly Promise<void>[] = [];
beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  const one = fleet.member('one');
  await untilActive(fleet, one, ['one', 'two']);
  behind = openConsoleApi({ url: `https://127.0.0.1:${fleet.balancer.port}`, caFile: fleet.caFile }, fleet.token);
  endpoint = await createXksEndpoint({ api: one.api, server: one.server }, 'cloud');
  const application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  applicationId = application.application.id;
  door = { accessGuid: application.accessGuid, appId: application.application.appId };
  // A busy machine answers late: only the answers count, not their time.
  database = fleet.database('erp', application, 'connect_timeout_ms = 20000\ncall_timeout_ms = 30000\n');
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
  const generated = await database.call('generate', { label: 'ORACLE.TDE.HSM.MK.06AA' });
  ofToken = generated.handle ?? 0;
  const ofSession = await database.call('generate', { label: 'session', token: false });
  expect([generated.rv, ofSession.rv]).toEqual(['CKR_OK', 'CKR_OK']);
  const vault = await one.api.call<{ id: string }>('POST', '/api/vaults', { name: 'changes' });
  for (const member of fleet.members) supervise(member);
  load = [cloudLoad(), cloudLoad(), databaseLoad([ofToken, ofSession.handle ?? 0]), changeLoad(vault.id)];
});
afterAll(async () => {
  running = false;
  supervising = false;
  await Promise.allSettled([...load, ...restarts.values()]);
  agent.destroy();
  await fleet?.end();
});

test('both nodes are restarted, one after the other', async () => {
  for (const member of fleet.members) {
    fleet.balancer.use(fleet.members.filter((other) => other !== member).map(({ server }) => server.port));
    expect(await member.stop('SIGTERM')).toBe(0);
    await untilWhole();
    fleet.balancer.use(fleet.members.map(({ server }) => server.port));
    await goOn('cloud', 'database', 'changes');
  }
  nothingLost();
  expect([...seen.changes.keys()].filter((what) => what.startsWith('generate'))).toEqual(['generate CKR_OK']);
});

test('a node is killed', async () => {
  for (const member of fleet.members) {
    await member.stop('SIGKILL');
    await goOn('cloud', 'database', 'changes');
    await untilWhole();
  }
  nothingLost();
  expect([...seen.changes.keys()].filter((what) => what.startsWith('generate'))).toEqual(['generate CKR_OK']);
});

test('the database server is killed, and is away', async () => {
  const refused = (): number =>
    [...seen.changes].reduce((sum, [what, times]) => (what.startsWith('503') ? sum + times : sum), 0);
  const before = refused();
  // What a node has used it continues with; one that has just started has used nothing yet.
  const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16).toString('base64') } as const;
  for (const { server } of fleet.members)
    await callTdeRoute(server, door, 'encrypt', cbc, { handle: ofToken, raw: Buffer.alloc(32) });
  await fleet.postgres.stop('SIGQUIT');
  await goOn('cloud', 'database');
  await until('a change to be refused', async () => (refused() > before ? true : undefined), 120);
  await fleet.postgres.start();
  await untilWhole();
  await untilChangesAreMade();
  nothingLost();
});

test('the database server is restarted', async () => {
  await fleet.postgres.restart();
  await untilWhole();
  await untilChangesAreMade();
  await goOn('cloud', 'database', 'changes');
  nothingLost();
});

test('what was acknowledged is there, on both nodes, and nothing that was destroyed', async () => {
  running = false;
  await Promise.all(load);
  await untilWhole();
  expect(book.length).toBeGreaterThan(rounds);
  expect(destroyed.length).toBeGreaterThan(rounds);
  const step = Math.ceil(sealedByCloud.length / opened);
  for (const { api, server } of fleet.members) {
    await Promise.all(
      sealedByCloud
        .filter((_, at) => at % step === 0)
        .map(async ({ plaintext, body }) => {
          const answer = await until('an answer to decrypt', async () => {
            const { status, body: answered } = await ask(pathOf('decrypt'), body, server.port);
            return status === 503 ? undefined : answered;
          });
          expect(answer).toEqual({ plaintext });
        }),
    );
    /** A node may have to reconnect to its database: that message is not a loss. */
    const stored = (path: string) =>
      until(path, async () => {
        const { status, text } = await api.send('GET', path);
        if (status !== 503) expect([path, status]).toEqual([path, 200]);
        return status === 503 ? undefined : (JSON.parse(text) as { state: string; currentVersion: number });
      });
    for (const { path, state, version } of book) {
      const key = await stored(path);
      if (state !== null) expect([path, key.state]).toEqual([path, state]);
      if (version !== null) expect([path, key.currentVersion]).toEqual([path, version]);
    }
    for (const { path } of destroyed) expect(await stored(path)).toMatchObject({ state: 'destroyed' });
  }
  for (const { handle } of destroyed) {
    const rv = await until('an answer to encrypt', async () => {
      const tried = await database.call('encrypt', { handle, iv, data: '11'.repeat(16) });
      return tried.rv === 'CKR_DEVICE_ERROR' ? undefined : tried.rv;
    });
    expect([handle, rv]).toEqual([handle, 'CKR_KEY_HANDLE_INVALID']);
  }
  // What is refused is refused with a reason, or the connection ended with its node.
  const known = /^(made|generate CKR_(OK|DEVICE_ERROR)|503 .+|ECONNRESET|EPIPE|a node ended)$/;
  expect([...seen.changes.keys()].filter((what) => !known.test(what))).toEqual([]);
});
