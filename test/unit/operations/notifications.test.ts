// The inbox over the real store: what is raised, when it is raised again, and when it is resolved.
// The test controls the time.
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openCore } from '../../../server/adapters/crypto/open-core.ts';
import { openStore } from '../../../server/adapters/store/store.ts';
import { createDisks } from '../../../server/app/open/disks.ts';
import { openCertificates } from '../../../server/app/tls/own-certificate.ts';
import { newId, serviceTenantId } from '../../../server/base/ids.ts';
import { toRfc3339 } from '../../../server/base/time.ts';
import { acrossTenants, serviceActor } from '../../../server/domain/actor.ts';
import { type BackupReceipt, parseBackupReceipt } from '../../../server/domain/backup-receipt.ts';
import { defaultSettings } from '../../../server/domain/endpoint.ts';
import { newKey } from '../../../server/domain/key.ts';
import type { LatencySummary } from '../../../server/domain/latency.ts';
import type { FleetNode } from '../../../server/domain/node.ts';
import {
  type Condition,
  dayMs,
  notificationKindNames,
  notificationRow,
  severityOf,
  stageOf,
} from '../../../server/domain/notification.ts';
import type { Setup } from '../../../server/domain/setup.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createCopyReceipts } from '../../../server/operations/copies/take-receipts.ts';
import type { Health } from '../../../server/operations/index.ts';
import { inbox } from '../../../server/operations/notifications/inbox.ts';
import { createSources } from '../../../server/operations/notifications/sources.ts';
import { createNotificationWatch } from '../../../server/operations/notifications/watch.ts';
import { rememberOpened } from '../../../server/operations/snapshots/last-opening.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { ErasureState } from '../../../server/ports/erasure.ts';
import type { LogState } from '../../../server/ports/log.ts';
import type { LogSinkState } from '../../../server/ports/log-sink.ts';
import type { ServedCertificate } from '../../../server/ports/meter.ts';
import type { Store } from '../../../server/ports/store.ts';
import { makeAuthority } from '../../support/authority.ts';
import { deadlinesBy } from '../../support/deadlines.ts';
import { notificationsTable } from '../../support/notifications-page.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { storedVault } from '../../support/stored.ts';

let time = Date.UTC(2026, 5, 1);
let monotonic = 0;
const clock = { now: () => time, monotonic: () => monotonic };
const deadlines = deadlinesBy(clock);
const pass = (ms: number): void => {
  time += ms;
  monotonic += ms;
};
const complaints: string[] = [];
const log = {
  ...quietLog,
  error: (text: string) => void complaints.push(text),
};
const folder = mkdtempSync(join(tmpdir(), 'dke-inbox-'));
let store: Store;
let tenantId: string;
beforeAll(async () => {
  store = await openStore({
    path: join(folder, 'dke.db'),
    clock,
    authenticateRow: () => 'mac',
    onFatal: (error) => {
      throw error;
    },
  });
  const tenant = newTenant('default', time);
  tenantId = tenant.id;
  await store.write((tx) => tx.tenants.insert(tenant));
});
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

let found: Condition[] = [];
let broken = false;
let doesTheJobs = true;
const fleet = {
  perform: <T>(_: unknown, work: () => Promise<T>) => (doesTheJobs ? work() : Promise.resolve(undefined)),
};
const ending = (name: string, harmAt: number): Condition => ({
  kind: 'tls.certificate-expiring',
  tenantId: serviceTenantId,
  subject: { kind: 'certificate', id: name, name },
  harmAt,
  details: {},
});
const watchOf = (over: Store = store) =>
  createNotificationWatch({ store: over, clock, log, fleet }, [
    {
      about: 'certificates',
      kinds: ['tls.certificate-expiring', 'erasure.blocked'],
      every: 'minute',
      look: () => (broken ? Promise.reject(new Error('away')) : Promise.resolve(found)),
    },
  ]);
const open = () => store.read.notifications.listOpen(everyTenant, {}, { limit: 100 });
const events = async () =>
  (await store.read.notifications.listEvents(0, 5_000)).map(
    ({ event, notification }) => `${event} ${notification.stage}`,
  );

describe('a notification', () => {
  let watch: ReturnType<typeof watchOf>;
  let from = 0;
  beforeEach(async () => {
    watch ??= watchOf();
    found = [];
    broken = false;
    await watch.check();
    from = (await events()).length;
  });
  const since = async () => (await events()).slice(from);

  test('is taken by someone and released, each once in the audit log', async () => {
    const actor = acrossTenants(serviceActor('anna'), serviceTenantId);
    const { list, acknowledge, release } = inbox({ store, clock }, {} as Parameters<typeof inbox>[1]);
    found = [ending('soon.example', time + 5 * dayMs), ending('later.example', time + 20 * dayMs)];
    await watch.check();
    const names = async (query: Parameters<typeof list>[1]) =>
      (await list(actor, query)).items.map(({ subject }) => subject.name);
    expect(await names({})).toEqual(['soon.example', 'later.example']);
    expect(await names({ minSeverity: 'medium' })).toEqual(['soon.example']);
    const [first] = (await list(actor, {})).items;
    expect(first).toMatchObject({ page: '/settings', action: 'View settings' });
    await acknowledge(actor, first?.id ?? '');
    expect(await acknowledge(actor, first?.id ?? '')).toMatchObject({ acknowledgedBy: actor.name });
    expect([await names({ acknowledged: true }), await names({ acknowledged: false })]).toEqual([
      ['soon.example'],
      ['later.example'],
    ]);
    await release(actor, first?.id ?? '');
    expect(await release(actor, first?.id ?? '')).toMatchObject({ acknowledgedAt: null, acknowledgedBy: null });
    expect(await names({ acknowledged: true })).toEqual([]);
    const kinds = (await store.read.audit.list(everyTenant, { order: 'newest' }, { limit: 10 })).map(
      ({ kind }) => kind,
    );
    expect(kinds).toEqual(['notification.released', 'notification.acknowledged']);
    await expect(release(actor, newId(time))).rejects.toMatchObject({ code: 'not-found' });
  });

  test('is raised at each lead time, once, and asks again for someone to take it', async () => {
    found = [ending('keys.example', time + 40 * dayMs)];
    await watch.check();
    expect(await open()).toEqual([]);
    pass(10 * dayMs);
    await watch.check();
    await watch.check();
    expect(await since()).toEqual(['raised 1']);
    const [first] = await open();
    expect(first).toMatchObject({ severity: 'low', stage: 1 });
    if (first !== undefined)
      await store.write((tx) => tx.notifications.update({ ...first, acknowledgedAt: time, acknowledgedBy: 'anna' }));
    pass(dayMs);
    await watch.check();
    expect((await open())[0]?.acknowledgedBy).toBe('anna');
    // Alerts are about what still waits for a person.
    expect(await store.read.notifications.countOpen()).toEqual([]);
    pass(22 * dayMs);
    await watch.check();
    expect((await open())[0]).toMatchObject({ severity: 'medium', stage: 2, acknowledgedAt: null, id: first?.id });
    expect(await store.read.notifications.countOpen()).toMatchObject([{ severity: 'medium', count: 1 }]);
    pass(8 * dayMs);
    await watch.check();
    expect((await open())[0]).toMatchObject({ severity: 'critical', stage: 4 });
    found = [ending('keys.example', time + 365 * dayMs)];
    await watch.check();
    expect(await open()).toEqual([]);
    expect(await since()).toEqual(['raised 1', 'worse 2', 'worse 4', 'resolved 4']);
  });

  test('tells what is so now, and asks again for someone to take it when it has another cause', async () => {
    const blocked = (details: object): Condition => ({
      kind: 'erasure.blocked',
      tenantId: serviceTenantId,
      subject: { kind: 'service', id: 'service', name: 'service' },
      harmAt: time,
      details: { records: 0, recordIds: [], nodes: [], standbys: [], snapshots: [], ...details },
    });
    const tell = async (details: object): Promise<string | null | undefined> => {
      found = [blocked(details)];
      await watch.check();
      const [one] = await open();
      expect(one?.details).toEqual(found[0]?.details);
      return one?.acknowledgedBy;
    };
    const take = async (): Promise<void> => {
      const [one] = await open();
      if (one !== undefined)
        await store.write((tx) => tx.notifications.update({ ...one, acknowledgedAt: time, acknowledgedBy: 'anna' }));
    };
    await tell({ nodes: ['one', 'two'] });
    await take();
    expect(await tell({ nodes: ['two'] })).toBe('anna');
    expect(await tell({ nodes: ['two'], standbys: ['west'] })).toBeNull();
    await take();
    expect(await tell({ standbys: ['west'] })).toBe('anna');
    expect(await tell({ standbys: ['east'] })).toBeNull();
    await take();
    expect(await tell({ standbys: ['east'], records: 1, recordIds: ['a'] })).toBeNull();
    await take();
    expect(await tell({ records: 1, recordIds: ['b'] })).toBeNull();
    await take();
    expect(await tell({ records: 0 })).toBe('anna');
    found = [];
    await watch.check();
    expect(await since()).toEqual(['raised 1', ...Array(4).fill('worse 1'), 'resolved 1']);
  });

  test('has the name that its subject has now', async () => {
    found = [ending('d.example', time + dayMs)];
    await watch.check();
    found = found.map((each) => ({ ...each, subject: { ...each.subject, name: 'another name' } }));
    await watch.check();
    expect((await open()).map(({ subject }) => subject.name)).toEqual(['another name']);
    expect(await since()).toEqual(['raised 3']);
  });

  test('is about one thing: of two conditions about the same, the worse one is raised, and others with it', async () => {
    found = [
      ending('e.example', time + 20 * dayMs),
      ending('e.example', time + dayMs),
      ending('e.example', time + 5 * dayMs),
      ending('f.example', time + 2 * dayMs),
    ];
    await watch.check();
    expect(complaints.at(-1)).toBe('certificates: two conditions about the same');
    expect((await open()).map(({ subject, stage }) => [subject.name, stage])).toEqual([
      ['e.example', 3],
      ['f.example', 2],
    ]);
  });

  test('is raised again when its row says that it is over, while its cause is there', async () => {
    found = [ending('g.example', time + dayMs), ending('h.example', time + dayMs)];
    await watch.check();
    const [first] = await open();
    if (first !== undefined) await store.write((tx) => tx.notifications.update({ ...first, resolvedAt: time }));
    expect(await open()).toHaveLength(1);
    await watch.check();
    expect((await open()).map(({ subject }) => subject.name).sort()).toEqual(['g.example', 'h.example']);
  });

  test('stays open while its state is unknown, and the others are checked', async () => {
    found = [ending('a.example', time + dayMs)];
    await watch.check();
    broken = true;
    await watch.check();
    expect(await open()).toHaveLength(1);
    expect(complaints.at(-1)).toContain('certificates could not be checked');
  });

  test('comes once, however many nodes look', async () => {
    found = [ending('b.example', time + dayMs)];
    await Promise.all([watch.check(), watchOf().check()]);
    expect(await open()).toHaveLength(1);
  });

  test('is left to the node that does the jobs of every minute, also when another node wants all to be checked at once', async () => {
    found = [ending('c.example', time + dayMs)];
    await watch.check();
    expect(await open()).toHaveLength(1);
    doesTheJobs = false;
    found = [];
    await watch.checkAll();
    expect(await open()).toHaveLength(1);
    doesTheJobs = true;
    await watch.checkAll();
    expect(await open()).toEqual([]);
  });

  test('is raised beside many others in commits that leave room for other writers, and each is over once', async () => {
    let commits = 0;
    const counting = watchOf({
      ...store,
      write: (work, options) => {
        commits += 1;
        return store.write(work, options);
      },
    });
    // More than are read at once, several with one time of harm at each boundary.
    const many = Array.from({ length: 1_250 }, (_, at) => ending(`${at}.example`, time + 5 * dayMs));
    found = many;
    await counting.check();
    expect(commits).toBe(13);
    expect((await store.read.notifications.listOpen(everyTenant, {}, { limit: 2_000 })).length).toBe(1_250);
    found = many.slice(0, 1);
    await counting.check();
    await counting.check();
    expect((await open()).map(({ subject }) => subject.name)).toEqual(['0.example']);
    const reported = Map.groupBy(await since(), (event) => event.split(' ')[0]);
    expect([reported.get('raised')?.length, reported.get('resolved')?.length]).toEqual([1_250, 1_249]);
  });

  test('comes before those with more time left', async () => {
    found = [
      ending('late.example', time + 20 * dayMs),
      ending('soon.example', time + 2 * dayMs),
      ending('now.example', time - 1),
    ];
    await watch.check();
    expect((await open()).map(({ subject }) => subject.name)).toEqual(['now.example', 'soon.example', 'late.example']);
    const page = await store.read.notifications.listOpen(everyTenant, {}, { limit: 1 });
    const cursor = `${page[0]?.harmAt}.${page[0]?.id}`;
    const rest = await store.read.notifications.listOpen(everyTenant, {}, { after: cursor, limit: 5 });
    expect(rest.map(({ subject }) => subject.name)).toEqual(['soon.example', 'late.example']);
    expect(await store.read.notifications.listOpen(tenantId, {}, { limit: 5 })).toEqual([]);
  });
});

test('docs/notifications.md shows the table (node test/support/notifications-page.ts)', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/notifications.md'), 'utf8');
  expect(page).toContain(notificationsTable());
});

test('every kind has a severity for each of its stages, and says what to do', () => {
  for (const kind of notificationKindNames) {
    const { leadDays, severities, fix, text } = notificationRow(kind);
    expect([kind, severities.length]).toEqual([kind, leadDays.length + 1]);
    expect([...leadDays].sort((a, b) => b - a)).toEqual(leadDays);
    expect(fix.length * text.length).toBeGreaterThan(0);
  }
  expect(stageOf(ending('x', 8 * dayMs), 0)).toBe(1);
  expect(stageOf(ending('x', dayMs), 0)).toBe(3);
  expect(severityOf('tls.certificate-expiring', 99)).toBe('critical');
});

describe('what is checked', () => {
  let locked = true;
  let dropped = 0;
  let nodes: readonly Partial<FleetNode>[] = [];
  let logFailure: LogState['failure'] = null;
  let isAway = false;
  let erasureState: ErasureState = { state: 'idle', blockers: null, failure: null, waitsFor: null };
  let sinks: readonly LogSinkState[] = [];
  let schedule: string | null = null;
  let reminders = { token: 0, key: 0, backup: 0 };
  let checks: Health['checks'] = [];
  let steps: Setup['steps'] = [];
  let certificateFaults = async (): Promise<readonly string[]> => [];
  let hashKeys: Readonly<Record<string, { readonly since: number | null; readonly former: number }>> = {};
  const hours = new Map<string, LatencySummary>();
  const sources = (certificates: readonly ServedCertificate[] = []) =>
    createSources(
      {
        store,
        clock,
        deadlines,
        erasure: { schedule: () => undefined, state: async () => erasureState },
        core: { memoryStatus: () => ({ capacity: 1, used: 0, keys: 0, locked }) },
        directory: { requestLog: () => ({ queued: 0, dropped }) },
        ring: {
          auditKeySince: () => time,
          refreshHashKey: () => Promise.resolve(false),
          hashKey: (name: string) => hashKeys[name],
        },
        root: { current: { epoch: 1 } },
        fleet: { nodes: () => Promise.resolve(nodes) },
      } as unknown as Parameters<typeof createSources>[0],
      {
        certificates: () => certificates,
        certificateFaults: () => certificateFaults(),
        forwarding: { state: () => Promise.resolve(sinks) },
        latency: { lastHour: async () => hours },
        health: async () => ({ healthy: checks.every(({ healthy }) => healthy), usable: true, at: time, checks }),
        logState: () => ({ lost: logFailure?.lost ?? 0, failure: logFailure }),
        setup: { get: async () => ({ finishedAt: null, steps }) },
        folder: { away: async () => isAway, archive: { directory: '/mnt/snapshots' } },
        schedule,
        reminders,
      },
    );
  const look = async (kind: Condition['kind'], from = sources()): Promise<readonly Condition[]> => {
    const source = from.find(({ kinds }) => kinds.includes(kind));
    return ((await source?.look()) ?? []).filter((condition) => condition.kind === kind);
  };
  const made = async (profile: 'standard' | 'high-security', ageDays: number, keys = 1, of: string = tenantId) => {
    const id = newId(time);
    const createdAt = time - ageDays * dayMs;
    const vault = storedVault({ id, tenantId: of, name: `${profile} ${ageDays}`, createdAt, profile });
    const keyIds = Array.from({ length: keys }, () => newId(time));
    await store.write(async (tx) => {
      await tx.vaults.insert(vault);
      for (const keyId of keyIds) {
        await tx.keys.insert(newKey({ id: keyId, tenantId: of, vaultId: id, name: keyId, createdAt, usages: [] }));
        await tx.keys.insertVersion({ keyId, version: 1, createdAt });
      }
    });
    return { vaultId: id, keyId: keyIds[0] ?? '', createdAt };
  };

  test('keys: from 6 months, overdue after 12; in the high-security profile from 3, overdue after 6', async () => {
    const young = await made('standard', 100);
    const due = await made('standard', 200);
    const strict = await made('high-security', 100);
    const late = await made('high-security', 190);
    const conditions = await look('key.rotation-due');
    const stages = new Map(conditions.map((each) => [each.subject.id, stageOf(each, time)]));
    expect(stages.get(young.vaultId)).toBeUndefined();
    expect(stages.get(due.vaultId)).toBe(1);
    expect(stages.get(strict.vaultId)).toBe(1);
    expect(stages.get(late.vaultId)).toBe(3);
    await store.write((tx) => tx.keys.insertVersion({ keyId: late.keyId, version: 2, createdAt: time }));
    const key = await store.read.keys.get(tenantId, late.keyId);
    if (key !== undefined)
      await store.write(async (tx) => {
        await tx.keys.get(key.tenantId, key.id);
        await tx.keys.update({ ...key, currentVersion: 2 });
      });
    expect((await look('key.rotation-due')).map(({ subject }) => subject.id)).not.toContain(late.vaultId);
  });

  test('keys: every one that is due counts once, however many were made at once', async () => {
    const many = await made('standard', 300, 120);
    const [condition] = (await look('key.rotation-due')).filter(({ subject }) => subject.id === many.vaultId);
    expect(condition?.details).toMatchObject({ keys: 120, profile: 'standard' });
    expect(condition?.harmAt).toBeGreaterThan(many.createdAt);
  });

  test('accepted risks of the setup: told for as long as they are accepted and not done', async () => {
    const confirmed = { at: time, by: 'anna' };
    const step = (state: 'confirmed' | 'done') => ({ step: 'audit-sinks', state, finding: '', confirmed }) as const;
    expect(await look('setup.risk-accepted')).toEqual([]);
    await store.write((tx) => tx.settings.set('setup:audit-sinks', JSON.stringify(confirmed)));
    steps = [step('confirmed')];
    expect(await look('setup.risk-accepted')).toMatchObject([
      { subject: { name: 'audit-sinks' }, details: { steps: ['audit-sinks'] } },
    ]);
    steps = [step('done')];
    expect(await look('setup.risk-accepted')).toEqual([]);
    await store.write((tx) => tx.settings.set('setup:audit-sinks', null));
  });

  test('tokens: a month before their end, unless they were made for less', async () => {
    const insert = async (name: string, madeDays: number, leftDays: number) => {
      await store.write((tx) =>
        tx.tokens.insert({
          ...{
            id: newId(time),
            tenantId: null,
            ownerId: null,
            personId: null,
            kind: 'api',
            name,
            grants: [],
            hash: name,
            integrity: 'ok',
          },
          ...{
            createdAt: time - madeDays * dayMs,
            expiresAt: time + leftDays * dayMs,
            revokedAt: null,
            lastUsedAt: null,
          },
        }),
      );
    };
    await insert('yearly', 340, 25);
    await insert('shift', 0, 0.3);
    await insert('forgotten', 400, -30);
    const stages = (await look('token.expiring')).map((each) => [each.subject.name, stageOf(each, time)]);
    expect(stages).toEqual([['yearly', 1]]);
  });

  test('tokens without an end: after the age of the configuration, until they are revoked', async () => {
    const insert = async (name: string, ageDays: number, more: object): Promise<string> => {
      const id = newId(time);
      await store.write((tx) =>
        tx.tokens.insert({
          ...{
            id,
            tenantId: null,
            ownerId: null,
            personId: null,
            kind: 'api',
            name,
            grants: [],
            hash: name,
            integrity: 'ok',
          },
          ...{ createdAt: time - ageDays * dayMs, expiresAt: null, revokedAt: null, lastUsedAt: null, ...more },
        }),
      );
      return id;
    };
    const id = await insert('old', 400, {});
    await insert('young', 300, {});
    await insert('old with an end', 400, { expiresAt: time + 500 * dayMs });
    await insert('old and revoked', 400, { revokedAt: time });
    expect(await look('token.old')).toEqual([]);
    reminders = { token: 365, key: 0, backup: 0 };
    expect(await look('token.old')).toMatchObject([
      { subject: { kind: 'token', id, name: 'old' }, harmAt: time - 35 * dayMs, tenantId: serviceTenantId },
    ]);
    reminders = { token: 500, key: 0, backup: 0 };
    expect(await look('token.old')).toEqual([]);
  });

  test('the keys of sessions and API tokens: due after a year, and a former one that is still accepted', async () => {
    const [first] = await store.read.audit.list(everyTenant, { order: 'oldest' }, { limit: 1 });
    const since = time - 340 * dayMs;
    hashKeys = { 'session-hash': { since: null, former: 0 }, 'api-token-hash': { since, former: 0 } };
    expect(await look('session.key-old')).toEqual([]);
    expect(await look('token.key-old')).toEqual([]);
    reminders = { token: 0, key: 365, backup: 0 };
    // The first key is as old as the service.
    expect(await look('session.key-old')).toMatchObject([{ harmAt: (first?.at ?? 0) + 365 * dayMs }]);
    const [due] = await look('token.key-old');
    expect(due).toMatchObject({ harmAt: since + 365 * dayMs, tenantId: serviceTenantId });
    expect(due && stageOf(due, time)).toBe(1);
    expect(await look('token.former-key')).toEqual([]);
    for (const [days, found] of [
      [29, 0],
      [31, 1],
    ] as const) {
      hashKeys = { 'api-token-hash': { since: time - days * dayMs, former: 1 } };
      expect(await look('token.former-key')).toHaveLength(found);
    }
    reminders = { token: 0, key: 0, backup: 0 };
  });

  test('the backup of the service: missing or old, and the text says which', async () => {
    reminders = { token: 0, key: 0, backup: 7 };
    const receipts: BackupReceipt[] = [];
    const { run } = createCopyReceipts({ store, clock }, { 'service-backup': () => receipts, 'root-backup': () => [] });
    const recorded = async () =>
      (await store.read.audit.list(everyTenant, { kind: 'service.backed-up', order: 'newest' }, { limit: 5 })).map(
        ({ details }) => details.digest,
      );
    const named = async () => (await look('backup.old')).map(({ subject }) => subject.name);
    // A new service has a day: the first record of this log is older.
    const [first] = await store.read.audit.list(everyTenant, { order: 'oldest' }, { limit: 1 });
    expect((await look('backup.old'))[0]?.harmAt).toBe((first?.at ?? 0) + dayMs);
    expect(await named()).toEqual(['none was created']);
    // Two since the service has looked last: the audit log gets the digest of each.
    for (const [before, digest] of [
      [1, 'of the first'],
      [0, 'of the second'],
    ] as const) {
      const receipt = parseBackupReceipt({
        backupId: digest.replaceAll(' ', '-'),
        at: time - before,
        bytes: 17,
        digest,
      });
      if (receipt !== undefined) receipts.push(receipt);
    }
    await run('now');
    expect(await named()).toEqual([]);
    const { at } = receipts.at(-1) ?? { at: 0 };
    expect(await recorded()).toEqual(['of the second', 'of the first']);
    pass(20_000);
    await run();
    expect(await recorded()).toHaveLength(2);
    pass(Math.max(0, at + 7 * dayMs - time - 1));
    expect(await named()).toEqual([]);
    pass(1);
    expect(await named()).toEqual([`the last one was created at ${toRfc3339(at)}`]);
    reminders = { token: 0, key: 0, backup: 0 };
    expect(await named()).toEqual([]);
  });

  test('certificates: 30, 7 and 1 days before their end, and yearly', async () => {
    const from = sources([
      { fingerprint: 'AA', names: ['keys.example'], beginsAt: time - 350 * dayMs, endsAt: time + 6 * dayMs },
    ]);
    expect((await look('tls.certificate-expiring', from)).map((each) => stageOf(each, time))).toEqual([2]);
    expect((await look('tls.certificate-old', from)).map((each) => stageOf(each, time))).toEqual([1]);
  });

  test('the files of the certificates: lost or of another key, and put back', async () => {
    const { raw } = openCore({ allowUnlocked: true });
    const open = (dataDirectory: string) => {
      const config = {
        dataDirectory,
        server: { publicNames: ['localhost'] },
        tls: { main: undefined, additional: [] },
      };
      return openCertificates(
        config as unknown as Parameters<typeof openCertificates>[0],
        raw,
        log,
        createDisks(folder),
      );
    };
    const places = [mkdtempSync(join(folder, 'tls-')), mkdtempSync(join(folder, 'tls-'))] as const;
    const [own, other] = places.map(open);
    own?.make();
    other?.make();
    certificateFaults = async () => (await own?.faults([])) ?? [];
    const [file, copy] = [join(places[0], 'tls.crt'), join(places[0], 'copy')];
    const named = async () => (await look('tls.file-unusable')).map(({ subject }) => subject.name);
    expect(await named()).toEqual([]);
    copyFileSync(file, copy);
    rmSync(file);
    expect(await named()).toEqual([expect.stringMatching(`^${file} cannot be read \\(ENOENT\\): put `)]);
    copyFileSync(join(places[1], 'tls.crt'), file);
    expect(await named()).toEqual([expect.stringContaining(`is not that of ${file}`)]);
    copyFileSync(copy, file);
    expect(await named()).toEqual([]);
  });

  test('a file that could be served but that clients would refuse is reported before it is served', async () => {
    const { raw } = openCore({ allowUnlocked: true });
    const place = mkdtempSync(join(folder, 'tls-'));
    const [certificate, key] = [join(place, 'renewed.crt'), join(place, 'renewed.key')];
    const authority = makeAuthority(place, 'Example Renewing CA');
    const install = (dates: object = {}): void => {
      const issued = authority.issue({ commonName: 'localhost', names: ['DNS:localhost'], ...dates });
      copyFileSync(issued.certificate, certificate);
      copyFileSync(issued.key, key);
    };
    install();
    const config = {
      ...{ dataDirectory: place, server: { publicNames: ['localhost'] } },
      tls: { main: { certificate, key }, additional: [] },
    };
    const served = openCertificates(
      config as unknown as Parameters<typeof openCertificates>[0],
      raw,
      log,
      createDisks(folder),
    );
    certificateFaults = () => served.faults([]);
    const named = async () => (await look('tls.file-unusable')).map(({ subject }) => subject.name);
    expect(served.taken(served.read())).toEqual([]);
    expect(await named()).toEqual([]);
    install({ notBefore: '20250101000000Z', notAfter: '20250201000000Z' });
    expect(await named()).toEqual([expect.stringContaining(`${certificate}: it expired on 2025-02-01`)]);
    install();
    expect(await named()).toEqual([]);
  });

  test('a certificate of another issuer, for a while after it was taken', async () => {
    const issuers = async () => (await look('tls.issuer-changed')).map(({ subject }) => subject.name);
    expect(await issuers()).toEqual([]);
    await store.write((tx) =>
      tx.audit.append({
        kind: 'tls.issuer-changed',
        actor: serviceActor('r'),
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: { node: 'one', names: 'keys.example', expiresAt: 'later', fingerprint: 'AA', reason: 'another' },
      }),
    );
    expect(await issuers()).toEqual(['keys.example on one']);
  });

  test('snapshots: the last one failed, or none was verified for a week', async () => {
    const insert = async (state: 'available' | 'failed', ageDays: number): Promise<string> => {
      const at = time - ageDays * dayMs;
      const id = newId(at);
      await store.write((tx) =>
        tx.snapshots.insert({
          ...{
            id,
            tenantId,
            origin: 'requested',
            state,
            createdAt: at,
            auditSize: 1,
            size: 1,
            counts: null,
            signer: null,
          },
          ...{ recoveryKeyIds: [], deletedAt: null, purgedAt: null, integrity: 'ok' },
          ...(state === 'failed'
            ? { verification: null, verifiedAt: null, failure: 'the disk is full' }
            : { verification: { at, depth: 'sealed', valid: true, finding: null }, verifiedAt: at, failure: null }),
        }),
      );
      return id;
    };
    const reported = async (kind: Condition['kind']) => (await look(kind)).map(({ subject }) => subject.id);
    expect(await reported('snapshot.old')).toEqual([]);
    const old = await insert('available', 8);
    expect(await reported('snapshot.old')).toEqual([old]);
    expect(await reported('snapshot.failed')).toEqual([]);
    const failed = await insert('failed', 1);
    expect(await reported('snapshot.failed')).toEqual([failed]);
    expect((await look('snapshot.failed'))[0]?.details).toEqual({ state: 'failed', reason: 'the disk is full' });
    await insert('available', 0);
    expect([...(await reported('snapshot.old')), ...(await reported('snapshot.failed'))]).toEqual([]);
    // Made and read, and never opened with the recovery key.
    expect(await look('snapshot.unopened')).toMatchObject([
      { subject: { name: 'default' }, details: { openedAt: null } },
    ]);
    await store.write((tx) => rememberOpened(tx, tenantId, time - 100 * dayMs));
    expect(await reported('snapshot.unopened')).toEqual([]);
    await store.write((tx) => rememberOpened(tx, tenantId, time - 200 * dayMs));
    expect(await reported('snapshot.unopened')).toEqual([tenantId]);
  });

  test('no snapshot: of a tenant with keys, a day after it was made; and of any, where a schedule has no recovery key', async () => {
    const reported = async () =>
      (await look('snapshot.none')).map(({ subject, details }) => [subject.name, details.reason]);
    const tenant = newTenant('unsaved', time);
    await store.write((tx) => tx.tenants.insert(tenant));
    expect(await reported()).toEqual([]);
    await made('standard', 0, 1, tenant.id);
    expect(await reported()).toEqual([]);
    pass(2 * dayMs);
    expect(await reported()).toEqual([['unsaved', 'there is no recovery key']]);
    schedule = '0 3 * * *';
    expect(await reported()).toEqual([['any tenant', 'there is a schedule but no recovery key']]);
    await store.write((tx) =>
      tx.recoveryKeys.insert({
        ...{
          id: '0123456789abcdef',
          name: 'safe',
          publicKey: 'AA==',
          createdAt: time,
          removedAt: null,
          integrity: 'ok',
        },
      }),
    );
    expect(await reported()).toEqual([['unsaved', 'none was created']]);
    schedule = null;
  });

  test('endpoints: slow above 1 % over 100 ms, too late with any over 250 ms; a new credential that signs nothing', async () => {
    const { vaultId, keyId } = await made('standard', 0);
    const id = newId(time);
    const hour = { requests: 1000, errors: 0, over100Ms: 10, over250Ms: 0, p50Ms: 1, p99Ms: 90 };
    const credential = (accessKeyId: string, ageDays: number, lastUsedAt: number | null) =>
      ({ id: newId(time), endpointId: id, accessKeyId, createdAt: time - ageDays * dayMs, lastUsedAt }) as const;
    await store.write(async (tx) => {
      await tx.endpoints.insert({
        ...{ id, tenantId, name: 'cloud', prefix: '/cloud', vaultId, keyId, state: 'enabled' },
        ...{ settings: defaultSettings, createdAt: time, credentials: [], integrity: 'ok' },
      });
      await tx.endpoints.insertCredential(tenantId, credential('OLD', 10, time));
    });
    const reported = async (kind: Condition['kind']) => (await look(kind)).map(({ subject }) => subject.id);
    hours.set(id, hour);
    expect([...(await reported('endpoint.slow')), ...(await reported('endpoint.late'))]).toEqual([]);
    hours.set(id, { ...hour, over100Ms: 11 });
    expect(await reported('endpoint.slow')).toEqual([id]);
    hours.set(id, { ...hour, over100Ms: 11, over250Ms: 1 });
    expect([await reported('endpoint.slow'), await reported('endpoint.late')]).toEqual([[], [id]]);
    expect(await reported('endpoint.credential-unused')).toEqual([]);
    await store.write((tx) => tx.endpoints.insertCredential(tenantId, credential('NEW', 1, null)));
    const [unused] = await look('endpoint.credential-unused');
    expect(unused).toMatchObject({ harmAt: time + 6 * dayMs, details: { accessKeyId: 'NEW' } });
  });

  test('the service itself: its own checks, locked memory, dropped entries, its log, silent nodes', async () => {
    const all = ['health.failing', 'memory.unlocked', 'requests.dropped', 'log.failing', 'node.offline'] as const;
    const reported = async () => (await Promise.all(all.map((kind) => look(kind)))).flat();
    nodes = [{ id: 'n1', name: 'one', state: 'active', heartbeatAt: time }];
    expect(await reported()).toEqual([]);
    locked = false;
    dropped = 3;
    nodes = [...nodes, { id: 'n2', name: 'two', state: 'offline', heartbeatAt: time - 5000 }];
    checks = [
      { name: 'store', healthy: false, detail: 'the disk is full', durationMs: 1 },
      { name: 'root-key', healthy: true, detail: 'holds', durationMs: 1 },
    ];
    logFailure = { since: time - 7000, message: 'ENOSPC: no space left on device, write', lost: 4 };
    const [health, memory, requests, ownLog, node] = await reported();
    isAway = true;
    expect(await look('snapshot.folder-missing')).toMatchObject([{ subject: { name: '/mnt/snapshots' } }]);
    isAway = false;
    logFailure = null;
    expect(ownLog?.details).toMatchObject({ reason: 'ENOSPC: no space left on device, write', lost: 4 });
    expect(health).toMatchObject({ subject: { name: 'store' }, details: { store: 'the disk is full' } });
    expect([memory?.kind, requests?.details]).toEqual(['memory.unlocked', { dropped: 3 }]);
    checks = [...checks.slice(0, 1), { name: 'root-key', healthy: false, detail: 'is gone', durationMs: 1 }];
    // One that is acknowledged does not hide the next.
    const failing = await look('health.failing');
    expect(failing.map(({ subject: { name }, details }) => [name, details])).toEqual([
      ['store', { store: 'the disk is full' }],
      ['root-key', { 'root-key': 'is gone' }],
    ]);
    expect(new Set(failing.map(({ subject: { id } }) => id)).size).toBe(2);
    expect(node).toMatchObject({ subject: { kind: 'node', id: 'n2', name: 'two' }, harmAt: time - 5000 });
  });

  test('each of several causes is told: damaged records, certificates of callers, credentials, files', async () => {
    const blockers = {
      ...{ since: time, nodes: ['one'], standbys: ['west'], snapshots: ['s'] },
      records: Array.from({ length: 25 }, (_, at) => ({
        ...({
          kind: 'key',
          id: `k${String(at).padStart(2, '0')}`,
          name: null,
          version: 1,
          copy: 'vault-copy',
        } as const),
      })),
    };
    erasureState = { state: 'blocked', blockers, failure: null, waitsFor: null };
    const [blocked] = await look('erasure.blocked');
    expect(blocked?.details).toMatchObject({ records: 25, nodes: ['one'], standbys: ['west'], snapshots: ['s'] });
    expect(blocked?.details.recordIds).toHaveLength(20);
    erasureState = { state: 'idle', blockers: null, failure: null, waitsFor: null };
    certificateFaults = async () => ['one is missing', 'two expired'];
    expect(await look('tls.file-unusable')).toMatchObject([
      { subject: { name: 'one is missing; two expired' }, details: { faults: ['one is missing', 'two expired'] } },
    ]);
    certificateFaults = async () => [];
    const pair = { fingerprint: 'AA', names: ['keys.example'], beginsAt: time - 300 * dayMs };
    const served = sources([
      { ...pair, endsAt: time + dayMs },
      { ...pair, endsAt: time + 9 * dayMs },
    ]);
    expect((await look('tls.certificate-expiring', served)).map(({ subject: { id } }) => id)).toEqual([
      'keys.example',
      'keys.example (2)',
    ]);
  });

  test('every check, node and sink is a subject of its own: each condition of the platform has its own key', async () => {
    const failing = { since: time - 3_600_000, message: 'away' };
    sinks = ['a', 'b'].map((name) => ({
      ...{ name, type: 'file', target: `/${name}`, log: 'audit', endpoints: [], forwarded: 0, lag: 1, lost: 1 },
      ...{ lostAt: time, fork: { record: 1, at: time }, deliveredAt: null, failure: failing },
    }));
    checks = (['store', 'root-key', 'clock'] as const).map((name) => ({
      name,
      healthy: false,
      detail: 'no',
      durationMs: 1,
    }));
    nodes = ['n1', 'n2'].map((id) => ({ id, name: 'same name', state: 'offline', heartbeatAt: time }));
    const keys: string[] = [];
    for (const source of sources())
      keys.push(...(await source.look()).map(({ kind, subject }) => `${kind} ${subject.id}`));
    expect(new Set(keys).size).toBe(keys.length);
    for (const [kind, count] of [
      ['health.failing', 3],
      ['node.offline', 2],
      ['audit.sink-behind', 2],
      ['audit.sink-forked', 2],
      ['requests.sink-lost', 2],
    ] as const)
      expect([kind, keys.filter((key) => key.startsWith(kind)).length]).toEqual([kind, count]);
    [sinks, checks, nodes] = [[], [], []];
  });

  test('each kind is checked by one source', () => {
    const kinds = sources().flatMap((source) => source.kinds);
    expect([...kinds].sort()).toEqual([...notificationKindNames].sort());
  });
});
