// What people and programs do with the console's API, on each store: changes a second, audit
// records a second, the memory of a server with many keys; and how long each list takes at its
// first, middle and last page, and search, among many rows in every table.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../server/contract/api/row.ts';
import { envelopeType, instanceText, packEnvelope, tdeRoutes, unpackEnvelope } from '../../server/contract/tde.ts';
import type { Store } from '../../server/ports/store.ts';
import { fillLongTables, longTableIds } from '../support/long-tables.ts';
import { instance, masterKey, openTestService } from '../support/open-service.ts';
import { startServerProcess } from '../support/server-process.ts';
import { handOf } from '../support/snapshots.ts';
import { openPlace, type Place, type StoreName, stores } from './places.ts';
import { residentMiB } from './processes.ts';
import { fill } from './snapshots.ts';
import { table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const say = (text: string): void => {
  process.stderr.write(`  ${text}\n`);
};

/** Requests that are under way at once, as of so many people and programs. */
const lanes = 32;

interface Times {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

const summary = (times: readonly number[], seconds: number): Times => {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { perSecond: times.length / seconds, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
};

/** Does the work `count` times, so many at once, and measures each. */
const inLanes = async (count: number, width: number, work: (at: number) => Promise<unknown>): Promise<Times> => {
  const times: number[] = [];
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let at = next++; at < count; at = next++) {
        const start = performance.now();
        await work(at);
        times.push(performance.now() - start);
      }
    }),
  );
  return summary(times, (performance.now() - startedAt) / 1000);
};

const program = [resolve(import.meta.dirname, '../../dist/server/cli/main.js'), 'server'];
const settings = '[erasure]\ngather_ms = 20\n[log]\nlevel = "warn"\ndestination = "server.log"\n';

/** The built server, and one that calls it over connections that are kept. */
const startService = async (place: Place, folder?: string, token?: string) => {
  const server = await startServerProcess({
    program,
    toml: `${settings}${place.toml}`,
    ...(folder === undefined ? {} : { folder }),
  });
  const agent = new Agent({ keepAlive: true, maxSockets: lanes, ca: readFileSync(server.caFile) });
  const bearer = token ?? server.adminToken;
  const send = (method: string, path: string, headers: Record<string, string>, body?: Uint8Array | string) =>
    new Promise<{ readonly status: number; readonly bytes: Buffer }>((resolve, reject) => {
      const sent = request(new URL(path, server.url), { method, agent, headers }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part)).on('error', reject);
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, bytes: Buffer.concat(parts) }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const { status, bytes } = await send(
      method,
      path,
      { authorization: `Bearer ${bearer}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body === undefined ? undefined : JSON.stringify(body),
    );
    const text = bytes.toString('utf8');
    if (status < 200 || status > 299) throw new Error(`${method} ${path} was answered with ${status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  return { server, token: bearer, send, call, pid: server.child.pid ?? 0, close: () => agent.destroy() };
};
type Service = Awaited<ReturnType<typeof startService>>;

/** A database that creates its master keys. */
const registerDatabase = async ({ call, send }: Service) => {
  const group = await call<{ id: string }>('POST', '/api/tde/groups', { name: 'bench' });
  const { application, accessGuid } = await call<{ application: { id: string }; accessGuid: string }>(
    'POST',
    '/api/tde/applications',
    { name: 'bench', groupId: group.id, appId: 'db' },
  );
  const headers = {
    authorization: `Bearer ${accessGuid}`,
    'content-type': envelopeType,
    'x-dke-instance': instanceText(instance),
  };
  return {
    applicationId: application.id,
    make: async (label: string): Promise<string> => {
      const path = `/tde/v1/${accessGuid}/db${tdeRoutes.generateKey.path}`;
      const { status, bytes } = await send('POST', path, headers, packEnvelope(masterKey(label)));
      if (status !== 200) throw new Error(`a master key was not made: ${status} ${bytes.toString('utf8')}`);
      return (unpackEnvelope(bytes).head as { readonly id: string }).id;
    },
  };
};

export interface ControlFigure {
  readonly store: StoreName;
  readonly operations: Readonly<Record<string, Times>>;
  readonly audit: { readonly together: Times; readonly alone: Times };
  readonly memory: {
    readonly keys: number;
    readonly idleMiB: number;
    /** After the changes. */
    readonly usedMiB: number;
    /** After a restart with so many keys, and a request for their first page. */
    readonly filledMiB: number;
    /** Number of tenants, among which the keys are divided equally. */
    readonly tenants: number;
  };
}

/**
 * Records a second, each in a unit of work of its own: together with others that wait, and one
 * after the other.
 */
const measureAudit = async (store: StoreName, records: number): Promise<ControlFigure['audit']> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-bench-audit-'));
  const place = await openPlace(store);
  const surroundings = {
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error: Error) => {
      throw error;
    },
  };
  const opened: Store =
    place.database === undefined
      ? await openStore({ ...surroundings, path: join(folder, 'dke.db') })
      : await openPostgresStore({
          ...surroundings,
          postgres: { ...place.database, password: undefined, ca: undefined, readers: 2 },
        });
  const append = (at: number) =>
    opened.write((tx) =>
      tx.audit.append({
        kind: 'key.disabled',
        actor: { kind: 'user', id: 'bench', name: 'bench', requestId: `bench-${at}`, peer: null },
        tenantId: 'bench',
        subject: { kind: 'key', id: `key-${at}` },
        details: {},
      }),
    );
  try {
    return { together: await inLanes(records, 64, append), alone: await inLanes(Math.ceil(records / 20), 1, append) };
  } finally {
    await opened.close();
    await place.remove();
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Number of keys of the tenant whose snapshot is restored again and again. */
const keysOfTenant = 5_000;

/**
 * Tenants with so many keys together, while the server is stopped: each is the first one's
 * snapshot, restored. Answers how many tenants.
 */
const fillTenants = async (folder: string, toml: string, keys: number): Promise<number> => {
  const opened = await openTestService({ folder, toml });
  try {
    const first = await opened.operations.tenants.default();
    await fill(opened, first.id, Math.min(keys, keysOfTenant));
    const hand = await handOf(opened);
    const snapshot = await hand.make(first.id);
    const tenants = Math.max(1, Math.round(keys / keysOfTenant));
    for (let made = 1; made < tenants; made++) await hand.restore(snapshot, { newTenant: `bench ${made}` });
    return tenants;
  } finally {
    await opened.stop();
  }
};

export const measureControl = async (store: StoreName, keys: number): Promise<ControlFigure> => {
  const place = await openPlace(store);
  let service = await startService(place);
  const { folder } = service.server;
  try {
    const { call } = service;
    const idleMiB = residentMiB(service.pid);
    const vault = await call<{ id: string }>('POST', '/api/vaults', { name: 'bench' });
    const made: string[] = [];
    const create = async (at: number): Promise<void> => {
      made.push((await call<{ id: string }>('POST', '/api/keys', { name: `key ${at}`, vaultId: vault.id })).id);
    };
    const sample = Math.min(2_000, Math.floor(keys / 2));
    const change = (verb: string) => (at: number) => call('POST', `/api/keys/${made[at]}/${verb}`);
    const operations: Record<string, Times> = {};
    operations['create a key'] = await inLanes(sample, lanes, create);
    operations['create a key, one after the other'] = await inLanes(Math.min(200, sample), 1, create);
    for (const verb of ['disable', 'enable', 'rotate'])
      operations[`${verb} a key`] = await inLanes(sample, lanes, change(verb));
    operations['soft-delete a key'] = await inLanes(sample, lanes, (at) => call('DELETE', `/api/keys/${made[at]}`));
    const database = await registerDatabase(service);
    const masterKeys: string[] = [];
    const masters = Math.min(500, sample);
    operations['make a master key, by its database'] = await inLanes(masters, lanes, async (at) => {
      masterKeys.push(await database.make(`bench ${at}`));
    });
    const path = `/api/tde/applications/${database.applicationId}/master-keys`;
    operations['destroy a master key'] = await inLanes(masters, lanes, (at) =>
      call('POST', `${path}/${masterKeys[at]}/destroy`, { confirm: `bench ${at}` }).catch(async () => {
        // The key that was created here may have another number, because lanes overtake each other.
        const { name } = await call<{ name: string }>('GET', `${path}/${masterKeys[at]}`);
        await call('POST', `${path}/${masterKeys[at]}/destroy`, { confirm: name });
      }),
    );
    const usedMiB = residentMiB(service.pid);
    service.close();
    await service.server.stop();
    say(`filling with ${keys} keys`);
    const tenants = await fillTenants(folder, `${settings}${place.toml}`, keys);
    service = await startService(place, folder, service.token);
    await service.call('GET', '/api/keys?limit=100');
    const filledMiB = residentMiB(service.pid);
    say('audit records');
    return {
      store,
      operations,
      audit: await measureAudit(store, Math.min(20_000, keys)),
      memory: { keys, idleMiB, usedMiB, filledMiB, tenants },
    };
  } finally {
    service.close();
    await service.server.stop();
    rmSync(folder, { recursive: true, force: true });
    await place.remove();
  }
};

export interface ListFigure {
  readonly what: string;
  readonly first: Times;
  readonly middle: Times | null;
  readonly last: Times | null;
}
export interface ListsFigure {
  readonly store: StoreName;
  readonly rows: number;
  readonly lists: readonly ListFigure[];
  readonly goal: Verdict;
}

const longestMs = 300;
const repeats = 30;

interface Answer {
  readonly items: readonly unknown[];
  readonly next?: string | null;
}

/**
 * Everything that was put there needs attention when the service first checks it, which does not
 * happen to a service that has grown. Resolves when that has been written into the inbox: when
 * there are events, and none has come for another ten seconds. Rejects after ten minutes.
 */
const inboxKept = async (events: () => number): Promise<void> => {
  let before = 0;
  let quiet = 0;
  for (let second = 0; second < 600; second += 1) {
    const now = events();
    quiet = now > 0 && now === before ? quiet + 1 : 0;
    if (quiet === 10) return;
    before = now;
    await setTimeout(1_000);
  }
  throw new Error('the inbox was not kept within ten minutes; look into the log of the server');
};

export const measureLists = async (store: StoreName, rows: number): Promise<ListsFigure> => {
  const place = await openPlace(store);
  const service = await startService(place);
  try {
    const { call, server } = service;
    const { items: tenants } = await call<{ items: readonly { readonly id: string }[] }>('GET', '/api/tenants');
    const ids = longTableIds();
    const statements = fillLongTables(store === 'SQLite' ? 'sqlite' : 'postgres', rows, tenants[0]?.id ?? '', ids);
    if (place.postgres === undefined) {
      const database = new DatabaseSync(join(server.dataDirectory, 'dke.db'), { timeout: 30_000 });
      // A filled table that a power failure takes is filled again: nothing waits for the disk.
      database.exec('pragma synchronous = off');
      for (const statement of statements) database.exec(statement);
      database.close();
    } else {
      for (const statement of statements) place.postgres.run('bench', statement);
      place.postgres.run('bench', 'analyze');
    }

    say(`filled with ${rows} rows in each table`);
    await inboxKept(() => {
      const count = 'select count(*) as count from notification_events';
      if (place.postgres !== undefined) return Number(place.postgres.run('bench', count));
      const database = new DatabaseSync(join(server.dataDirectory, 'dke.db'), { readOnly: true });
      const [row] = database.prepare(count).all();
      database.close();
      return Number(row?.count);
    });
    say('the inbox is kept');
    const time = (path: string): Promise<Times> => inLanes(repeats, 1, () => call('GET', path));
    const figures: ListFigure[] = [];
    const measureList = async (what: string, path: string): Promise<void> => {
      const mark = path.includes('?') ? '&' : '?';
      const pages: (string | null)[] = [null];
      for (let after: string | null = null; ; ) {
        const more: string = after === null ? '' : `&after=${encodeURIComponent(after)}`;
        const { next = null }: Answer = await call<Answer>('GET', `${path}${mark}limit=1000${more}`);
        if (next === null) break;
        pages.push(next);
        after = next;
      }
      const page = (cursor: string | null | undefined): Promise<Times> =>
        time(`${path}${mark}limit=100${cursor == null ? '' : `&after=${encodeURIComponent(cursor)}`}`);
      figures.push({
        what,
        first: await page(null),
        middle: pages.length < 3 ? null : await page(pages[Math.floor(pages.length / 2)]),
        last: pages.length < 2 ? null : await page(pages.at(-1)),
      });
      say(what);
    };
    const paths: Readonly<Record<string, string>> = {
      'masterKeys.list': ids.applicationId,
      'runbooks.runs': ids.applicationId,
      'diagnostics.list': ids.endpointId,
      'requests.searchOne': ids.endpointId,
    };
    for (const [group, groupRows] of Object.entries(apiRoutes))
      for (const [name, row] of Object.entries(groupRows as RouteGroup) as [string, RouteRow][]) {
        if (row.method !== 'get' || row.query === undefined || !('after' in row.query.shape)) continue;
        // For users only: the calling token has none.
        if (group === 'profile') continue;
        const id = paths[`${group}.${name}`] ?? '';
        await measureList(row.path.replace(/\{\w+\}/, '{id}'), row.path.replace(/\{\w+\}/, id));
      }
    for (const filtered of [
      '/api/keys?state=destroyed',
      '/api/keys?kind=master',
      `/api/keys?vaultId=${ids.vaultId}`,
      '/api/audit?kind=key.created',
      '/api/audit?to=2023-11-14T22:13:21Z',
      '/api/notifications?state=resolved',
      '/api/snapshots?state=available',
      '/api/requests?result=refused',
    ])
      await measureList(filtered.replace(ids.vaultId, '...'), filtered);
    for (const [what, asked] of [
      ['a word that all have', 'key'],
      ['one of them', 'key 077777'],
      ['words apart', '077777 key'],
      ['an id', 'k077777'],
      ['a request id', 'request-77777'],
      ['nothing', 'nowhere at all'],
    ] as const)
      figures.push({
        what: `search: ${what}`,
        first: await time(`/api/search?q=${encodeURIComponent(asked)}`),
        middle: null,
        last: null,
      });
    const [slowest = ''] = figures
      .flatMap(({ what, first, middle, last }) =>
        [first, middle, last].map((each) => [what, each?.p95Ms ?? 0] as const),
      )
      .toSorted((a, b) => b[1] - a[1])
      .map(([what, ms]) => `${ms.toFixed(0)} ms (${what})`);
    const worst = Math.max(
      ...figures.flatMap(({ first, middle, last }) => [first, middle, last].map((t) => t?.p95Ms ?? 0)),
    );
    return {
      store,
      rows,
      lists: figures,
      goal: { wanted: `p95 below ${longestMs} ms`, measured: `slowest ${slowest}`, met: worst < longestMs },
    };
  } finally {
    service.close();
    await service.server.remove();
    await place.remove();
  }
};

const ms = (value: number): string => `${value.toFixed(1)} ms`;

export const controlText = ({ store, operations, audit, memory }: ControlFigure): string => {
  const line = (what: string, { perSecond, p50Ms, p99Ms }: Times): string[] => [
    what,
    `${perSecond.toFixed(0)}/s`,
    ms(p50Ms),
    ms(p99Ms),
  ];
  const MiB = (value: number): string => `${value.toFixed(0)} MiB`;
  return [
    table([
      [`changes on ${store}, ${lanes} requests at once`, 'a second', 'p50', 'p99'],
      ...Object.entries(operations).map(([what, times]) => line(what, times)),
      line('audit records, 64 writers', audit.together),
      line('audit records, one after the other', audit.alone),
    ]),
    `memory of the server: idle ${MiB(memory.idleMiB)}, after these changes ${MiB(memory.usedMiB)}, started again with ${memory.keys} keys of ${memory.tenants} tenants ${MiB(memory.filledMiB)}`,
  ].join('\n');
};

export const listsText = ({ store, rows, lists, goal }: ListsFigure): string => {
  const cells = (times: Times | null): string[] => (times === null ? ['', ''] : [ms(times.p50Ms), ms(times.p95Ms)]);
  return [
    table([
      [`lists among ${rows} rows on ${store}, 100 a page`, 'first p50', 'p95', 'middle p50', 'p95', 'last p50', 'p95'],
      ...lists.map(({ what, first, middle, last }) => [what, ...cells(first), ...cells(middle), ...cells(last)]),
    ]),
    verdictText(goal),
  ].join('\n');
};

if (import.meta.main) {
  const [what = 'lists', rows = '100000', ...names] = process.argv.slice(2);
  for (const store of stores) {
    if (names.length > 0 && !names.includes(store)) continue;
    console.log(
      what === 'lists'
        ? listsText(await measureLists(store, Number(rows)))
        : controlText(await measureControl(store, Number(rows))),
    );
  }
}
