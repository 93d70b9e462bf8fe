// A service in its own process that measures how long its event loop is blocked: the longest time
// that its thread computed between two rounds of the loop. It is processor time, so that other
// processes on the machine do not count. It also measures a fixed piece of work.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { mostCallers } from '../../server/base/networks.ts';
import { acrossTenants, inTenant, serviceActor } from '../../server/domain/actor.ts';
import { defaultSettings } from '../../server/domain/endpoint.ts';
import type { Opening } from '../../server/operations/snapshots/openings.ts';
import { makeAuthority } from './authority.ts';
import { hardRules, many } from './largest-inputs.ts';
import { fillLongTables, longTableIds } from './long-tables.ts';
import { openTestService } from './open-service.ts';
import { layPackages, samplePackage } from './package-shelf.ts';
import { answerOpening, handOf } from './snapshots.ts';

/**
 * The requests of the test. Each gets an answer: `begin` and `block` null, an opening the recovery
 * key.
 */
export type LoopQuestion = 'begin' | 'longest' | 'unit' | 'block' | 'end' | { readonly opening: Opening };
export interface LoopPlace {
  readonly base: string;
  readonly token: string;
  readonly defaultTenant: string;
  /** A tenant with many keys; `snapshot` is its snapshot. */
  readonly bigTenant: string;
  readonly snapshot: string;
  /** PEM, of a client. */
  readonly certificate: string;
}
const rows = 2_000;
/** How many applications, and how many endpoints, have the largest lists. */
const largeRows = 300;
const keys = 600;

/** About a millisecond on the machines that the limits were chosen on. */
const fixedWork = (): number => {
  let hash = 2166136261;
  for (let at = 0; at < 750_000; at += 1) hash = Math.imul(hash ^ (at & 255), 16777619);
  return hash;
};
const usedMs = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.threadCpuUsage(since);
  return (user + system) / 1000;
};
/** The mean of many: the system counts processor time in steps of some milliseconds. */
const unitMs = (): number => {
  const many = 50;
  for (let times = 0; times < 20; times += 1) fixedWork();
  const before = process.threadCpuUsage();
  for (let times = 0; times < many; times += 1) fixedWork();
  return usedMs(before) / many;
};

let longest = 0;
let watching = false;
const watch = (): void => {
  let before = process.threadCpuUsage();
  const turn = (): void => {
    if (!watching) return;
    longest = Math.max(longest, usedMs(before));
    before = process.threadCpuUsage();
    setImmediate(turn);
  };
  setImmediate(turn);
};

const toml = '[tls]\nclient_certificates = true\n[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
const first = await openTestService({ toml });
const { folder } = first;
const tester = { ...serviceActor('test'), kind: 'administrator', id: 'test', name: 'test' } as const;
const { operations } = first;
const { id: defaultTenant } = await operations.tenants.default();
const everywhere = acrossTenants(tester, defaultTenant);
const grants = [{ role: 'administrator', scope: null, tenantId: null }] as const;
const { token } = await operations.tokens.create(everywhere, 'the service', { name: 'all', grants });
const { recovery, make } = await handOf(first);
const { id: bigTenant } = await operations.tenants.create(everywhere, { name: 'big' });
const big = inTenant(tester, bigTenant);
const vault = await operations.vaults.create(big, { name: 'big' });
await Promise.all(
  Array.from({ length: keys }, (_, at) => operations.keys.create(big, { name: `big key ${at}`, vaultId: vault.id })),
);
const snapshot = await make(bigTenant);
await first.stop();
const database = new DatabaseSync(join(folder, 'dke-data/dke.db'));
for (const statement of fillLongTables('sqlite', rows, defaultTenant, longTableIds())) database.exec(statement);
// Their files do not exist.
database.prepare("update snapshots set state = 'purged' where id <> ?").run(snapshot);
const certificate = readFileSync(makeAuthority(folder, 'clients').issue({ commonName: 'db' }).certificate, 'utf8');
const callers = { networks: [], certificates: many(mostCallers, () => certificate) };
for (const [table, column, value] of [
  ['tde_applications', 'callers', callers],
  ['endpoints', 'settings', { ...defaultSettings, rules: hardRules(28) }],
] as const)
  database
    .prepare(`update ${table} set ${column} = ? where id in (select id from ${table} order by id limit ${largeRows})`)
    .run(JSON.stringify(value));
database.close();
// The service did not write these rows, so the database is accepted explicitly.
const opened = await openTestService({ folder, toml, acceptDatabase: true });
const { service } = opened;
layPackages(join(folder, 'packages'), { [samplePackage]: 'a'.repeat(32 << 20) });

const server = createServer((incoming, outgoing) => service.handle(incoming, outgoing));
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const { port } = server.address() as AddressInfo;
const answers: Readonly<Record<Extract<LoopQuestion, string>, () => unknown>> = {
  begin: () => {
    longest = 0;
    watching = true;
    watch();
    return null;
  },
  longest: () => {
    watching = false;
    return longest;
  },
  unit: unitMs,
  block: () => {
    for (let times = 0; times < 40; times += 1) fixedWork();
    return null;
  },
  end: async () => {
    server.closeAllConnections();
    server.close();
    await opened.remove();
    process.disconnect();
  },
};
process.on('message', (question: LoopQuestion) => {
  const given = typeof question === 'string' ? answers[question]() : answerOpening(question.opening, recovery.key);
  void Promise.resolve(given).then((answer) => process.connected && process.send?.({ answer }));
});
process.once('disconnect', () => process.exit());
process.send?.({
  answer: {
    base: `http://127.0.0.1:${port}`,
    token,
    defaultTenant,
    bigTenant,
    snapshot,
    certificate,
  } satisfies LoopPlace,
});
