// Every kind of notification begins when its cause is there, and is resolved when what its row
// declares as its end has happened, in the inbox over the real store. A kind without a row here
// does not compile.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { newId, serviceTenantId } from '../../../server/base/ids.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import type { AuditDetails, AuditKind } from '../../../server/domain/audit-event.ts';
import { newOutsideCopy } from '../../../server/domain/copies.ts';
import { defaultSettings, type Endpoint } from '../../../server/domain/endpoint.ts';
import { newKey } from '../../../server/domain/key.ts';
import type { LatencySummary } from '../../../server/domain/latency.ts';
import type { FleetNode } from '../../../server/domain/node.ts';
import {
  dayMs,
  type NotificationKind,
  notificationKindNames,
  notificationRow,
} from '../../../server/domain/notification.ts';
import type { Setup } from '../../../server/domain/setup.ts';
import { anyCaller, type TdeApplication } from '../../../server/domain/tde.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import type { Health } from '../../../server/operations/index.ts';
import { createSources } from '../../../server/operations/notifications/sources.ts';
import { createNotificationWatch } from '../../../server/operations/notifications/watch.ts';
import { rememberOpened } from '../../../server/operations/snapshots/last-opening.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { ErasureState } from '../../../server/ports/erasure.ts';
import type { LogState } from '../../../server/ports/log.ts';
import type { LogSinkState } from '../../../server/ports/log-sink.ts';
import type { ServedCertificate } from '../../../server/ports/meter.ts';
import type { Repositories, Store, StoredToken } from '../../../server/ports/store.ts';
import type { StoredObject } from '../../../server/ports/tde-repositories.ts';
import { makeAuthority } from '../../support/authority.ts';
import { deadlinesBy } from '../../support/deadlines.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { requestRecord } from '../../support/request-record.ts';
import { storedVault } from '../../support/stored.ts';

let time = Date.UTC(2027, 5, 1);
const clock = { now: () => time, monotonic: () => time };
const folder = mkdtempSync(join(tmpdir(), 'dke-ends-'));
const authority = makeAuthority(folder, 'callers');
const complaints: unknown[] = [];
let store: Store;
let tenantId: string;

/** What others say: the core, the root key, the disk, other nodes. */
const fresh = () => ({
  locked: true,
  dropped: 0,
  nodes: [] as readonly Partial<FleetNode>[],
  logFailure: null as LogState['failure'],
  isAway: false,
  erasure: { state: 'idle', blockers: null, failure: null } as ErasureState,
  sinks: [] as readonly LogSinkState[],
  checks: [] as Health['checks'],
  steps: [] as Setup['steps'],
  faults: [] as readonly string[],
  certificates: [] as readonly ServedCertificate[],
  keySince: {} as Readonly<Record<string, number>>,
  former: 0,
  auditKeySince: time,
  rootEpoch: 1,
  doubt: null as { readonly ahead: number } | null,
  reminders: { token: 0, key: 0, backup: 0 },
  hours: new Map<string, LatencySummary>(),
});
let facts = fresh();

const watch = () => {
  const ports = {
    store,
    clock,
    deadlines: { ...deadlinesBy(clock), state: async () => ({ now: time, doubt: facts.doubt }) },
    erasure: { schedule: () => undefined, state: async () => facts.erasure },
    core: { memoryStatus: () => ({ capacity: 1, used: 0, keys: 0, locked: facts.locked }) },
    directory: { requestLog: () => ({ queued: 0, dropped: facts.dropped }) },
    ring: {
      auditKeySince: () => facts.auditKeySince,
      refreshHashKey: () => Promise.resolve(false),
      hashKey: (name: string) => ({ since: facts.keySince[name] ?? time, former: facts.former }),
    },
    root: { current: { epoch: facts.rootEpoch } },
    fleet: { nodes: () => Promise.resolve(facts.nodes) },
  } as unknown as Parameters<typeof createSources>[0];
  const sources = createSources(ports, {
    certificates: () => facts.certificates,
    certificateFaults: async () => facts.faults,
    forwarding: { state: async () => facts.sinks },
    latency: { lastHour: async () => facts.hours },
    health: async () => ({ healthy: true, usable: true, at: time, checks: facts.checks }),
    logState: () => ({ lost: 0, failure: facts.logFailure }),
    setup: { get: async () => ({ finishedAt: null, steps: facts.steps }) },
    folder: { away: async () => facts.isAway, archive: { directory: '/mnt/snapshots' } },
    schedule: null,
    reminders: facts.reminders,
  });
  const log = { ...quietLog, error: (text: string, fields?: unknown) => void complaints.push(text, fields) };
  const fleet = { perform: <T>(_: unknown, work: () => Promise<T>) => work() };
  return createNotificationWatch({ store, clock, log, fleet }, sources);
};

beforeAll(async () => {
  store = await openStore({
    path: join(folder, 'dke.db'),
    clock,
    authenticateRow: () => 'mac',
    onFatal: (error) => {
      throw error;
    },
  });
});
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

const write = <T>(work: (tx: Repositories) => Promise<T>): Promise<T> => store.write(work);
const vault = async (more: Parameters<typeof storedVault>[0] | object = {}) => {
  const made = storedVault({ id: newId(time), tenantId, name: `vault ${newId(time)}`, createdAt: time, ...more });
  await write((tx) => tx.vaults.insert(made));
  return made;
};
const key = async (ageDays: number, more: object = {}) => {
  const createdAt = time - ageDays * dayMs;
  const { id: vaultId } = await vault();
  const made = newKey({ id: newId(time), tenantId, vaultId, name: 'key', createdAt, usages: [], ...more });
  await write(async (tx) => {
    await tx.keys.insert(made);
    await tx.keys.insertVersion({ keyId: made.id, version: 1, createdAt });
  });
  return made;
};
const changeKey = (id: string, more: object) =>
  write(async (tx) => {
    const found = await tx.keys.get(tenantId, id);
    if (found !== undefined) await tx.keys.update({ ...found, ...more });
  });
const token = async (more: Partial<StoredToken>): Promise<StoredToken> => {
  const id = newId(time);
  const made: StoredToken = {
    ...{ id, tenantId: null, ownerId: null, personId: null, kind: 'api', name: id, grants: [], hash: id },
    ...{ integrity: 'ok', createdAt: time, expiresAt: null, revokedAt: null, lastUsedAt: null, ...more },
  };
  await write((tx) => tx.tokens.insert(made));
  return made;
};
const revoke = (made: StoredToken) =>
  write(async (tx) => {
    await tx.tokens.get(everyTenant, made.id);
    await tx.tokens.update({ ...made, revokedAt: time });
  });
const endpoint = async (more: Partial<Endpoint> = {}, ...ages: readonly (readonly [days: number, used: boolean])[]) => {
  const { id: keyId, vaultId } = await key(0);
  const id = newId(time);
  const credentials = ages.map(([days, used]) => {
    const createdAt = time - days * dayMs;
    return { id: newId(time), endpointId: id, accessKeyId: newId(time), createdAt, lastUsedAt: used ? time : null };
  });
  await write(async (tx) => {
    await tx.endpoints.insert({
      ...{ id, tenantId, name: id, prefix: `/${id}`, vaultId, keyId, state: 'enabled', settings: defaultSettings },
      ...{ createdAt: time, credentials: [], integrity: 'ok', ...more },
    });
    for (const credential of credentials) await tx.endpoints.insertCredential(tenantId, credential);
  });
  return { id, credentials };
};
const changeEndpoint = (id: string, more: Partial<Endpoint>) =>
  write(async (tx) => {
    const found = await tx.endpoints.get(tenantId, id);
    if (found !== undefined) await tx.endpoints.update({ ...found, ...more });
  });
const application = async (more: Partial<TdeApplication> = {}): Promise<TdeApplication> => {
  const { id: vaultId } = await vault({ kind: 'tde' });
  const groupId = newId(time);
  const made: TdeApplication = {
    ...{ id: newId(time), tenantId, groupId, name: newId(time), appId: 'app', state: 'enabled', compatibility: [] },
    ...{ tokenLabel: newId(time), callers: anyCaller, createdAt: time, integrity: 'ok', ...more },
  };
  await write(async (tx) => {
    await tx.groups.insert({ id: groupId, tenantId, name: groupId, vaultId, createdAt: time, integrity: 'ok' });
    await tx.applications.insert(made);
  });
  return made;
};
const object = async (of: TdeApplication, ageDays: number, more: object = {}): Promise<StoredObject> => {
  const { id, vaultId } = await key(ageDays, { kind: 'master', applicationId: of.id });
  const label = Buffer.from('ORACLE.TDE.HSM.MK.0123').toString('base64');
  const made = {
    ...{
      handle: await write((tx) => tx.objects.nextHandle()),
      id,
      tenantId,
      groupId: of.groupId,
      applicationId: of.id,
    },
    ...{ class: 'secret-key', label, algorithm: 'aes', bits: 256, usages: ['encrypt', 'decrypt'], sensitive: true },
    ...{ extractable: false, alwaysSensitive: true, neverExtractable: true, modifiable: true, destroyable: true },
    ...{ local: true, private: true, checkValue: null, publicKey: null, wrappedSensitive: false, rules: null },
    ...{ attributes: '', createdAt: time - ageDays * dayMs, state: 'active', integrity: 'ok', content: null },
    ...{ contentReplacedAt: null, destroyedAt: null, vaultId, ...more },
  } as unknown as StoredObject;
  await write((tx) => tx.objects.insert(made));
  return made;
};
const snapshot = async (ageDays: number, failed = false) => {
  const at = time - ageDays * dayMs;
  const verification = failed ? null : ({ at, depth: 'sealed', valid: true, finding: null } as const);
  const made = {
    ...{ id: newId(at), tenantId, origin: 'requested', state: failed ? 'failed' : 'available', createdAt: at },
    ...{ auditSize: 1, size: 1, counts: null, signer: null, recoveryKeyIds: [], deletedAt: null, purgedAt: null },
    ...{ integrity: 'ok', verification, verifiedAt: failed ? null : at, failure: failed ? 'the disk is full' : null },
  } as unknown as Parameters<Repositories['snapshots']['insert']>[0];
  await write((tx) => tx.snapshots.insert(made));
  return made;
};
const audited = <K extends AuditKind>(kind: K, subjectId: string, details: object) =>
  write((tx) =>
    tx.audit.append({
      ...{ kind, actor: serviceActor('r'), tenantId: serviceTenantId, details: details as AuditDetails<K> },
      subject: {
        kind: kind === 'administrator.recovered' || kind === 'token.revoked' ? 'token' : 'service',
        id: subjectId,
      },
    }),
  );
const served = (names: string, beginsDays: number, endsDays: number): ServedCertificate => ({
  ...{ fingerprint: names, names: [names], beginsAt: time + beginsDays * dayMs, endsAt: time + endsDays * dayMs },
});
const certificate = (notAfter: string): string =>
  authority.issue({ commonName: 'caller', usage: 'clientAuth', notBefore: '20260101000000Z', notAfter }).certificate;
const [soon, later] = ['20270603000000Z', '20290601000000Z'];
const pem = async (notAfter: string): Promise<string> =>
  readFileSync(certificate(notAfter), 'utf8').match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----\n/)?.[0] ?? '';
const sink = (more: Partial<LogSinkState>): LogSinkState => ({
  ...{ name: 'siem', type: 'file', target: '/siem', log: 'audit', endpoints: [], forwarded: 0, lag: 1, lost: 0 },
  ...{ lostAt: null, fork: null, deliveredAt: null, failure: null, ...more },
});
const hour = { requests: 1000, errors: 0, over100Ms: 0, over250Ms: 0, p50Ms: 1, p99Ms: 9 };
const outside = (kind: 'service-backup' | 'root-backup', rootEpoch: number | null) =>
  write((tx) =>
    tx.outsideCopies.insert(
      newOutsideCopy({ id: newId(time), kind, at: time, stateFrom: time, stateUntil: time, rootEpoch }),
    ),
  );

type Begin = () => Promise<() => unknown>;
/** Each begins by its cause, and answers what ends it. */
const ends: Readonly<Record<NotificationKind, Begin>> = {
  'key.rotation-due': async () => {
    const { id } = await key(400);
    return async () => {
      await write((tx) => tx.keys.insertVersion({ keyId: id, version: 2, createdAt: time }));
      await changeKey(id, { currentVersion: 2 });
    };
  },
  'master-key.rotation-due': async () => {
    const of = await application();
    await object(of, 400);
    return () => object(of, 0);
  },
  'master-key.unreadable': async () => {
    const made = await object(await application(), 0, { usages: ['encrypt'] });
    return () =>
      write(async (tx) => {
        const found = await tx.objects.get(made.handle);
        if (found !== undefined) await tx.objects.update({ ...found, usages: ['encrypt', 'decrypt'] });
      });
  },
  'endpoint.credential-due': async () => {
    const { credentials } = await endpoint({}, [100, true], [1, true]);
    return () => write((tx) => tx.endpoints.removeCredential(credentials[0]?.id ?? ''));
  },
  'application.access-guid-due': async () => {
    const { id: applicationId } = await application();
    const guid = {
      id: newId(time),
      applicationId,
      createdAt: time - 100 * dayMs,
      lastUsedAt: null,
      integrity: 'ok',
    } as const;
    const hash = randomBytes(32).toString('hex');
    await write((tx) => tx.accessGuids.insert({ ...guid, hash, removedAt: null }));
    return () =>
      write(async (tx) => {
        const found = (await tx.accessGuids.list(applicationId)).find(({ id }) => id === guid.id);
        if (found !== undefined) await tx.accessGuids.update({ ...found, removedAt: time });
      });
  },
  'tls.certificate-expiring': async () => {
    facts.certificates = [served('ending.example', -300, 5)];
    return () => {
      facts.certificates = [served('ending.example', 0, 365)];
    };
  },
  'tls.certificate-old': async () => {
    facts.certificates = [served('old.example', -370, 300)];
    return () => {
      facts.certificates = [served('old.example', 0, 365)];
    };
  },
  'tls.file-unusable': async () => {
    facts.faults = ['tls.crt cannot be read'];
    return () => {
      facts.faults = [];
    };
  },
  'tls.certificate-created': async () => {
    await audited('tls.certificate-created', 'service', { node: 'one', names: 'a', fingerprint: 'AA' });
    facts.certificates = [{ ...served('a', 0, 300), fingerprint: 'AA' }];
    return () => {
      facts.certificates = [{ ...served('a', 0, 300), fingerprint: 'BB' }];
    };
  },
  'tls.issuer-changed': async () => {
    await audited('tls.issuer-changed', 'service', { node: 'two', names: 'b', fingerprint: 'CC' });
    return () => {
      time += 31 * dayMs;
    };
  },
  'client-authority.expiring': async () => {
    const settings = async (notAfter: string) => ({
      ...defaultSettings,
      clientCertificate: { authorities: await pem(notAfter), commonName: 'caller' },
    });
    const { id } = await endpoint({ settings: await settings(soon) });
    return async () => changeEndpoint(id, { settings: await settings(later) });
  },
  'client-certificate.expiring': async () => {
    const callers = async (notAfter: string) => ({ networks: [], certificates: [await pem(notAfter)] });
    const made = await application({ callers: await callers(soon) });
    return () =>
      write(async (tx) => {
        await tx.applications.get(tenantId, made.id);
        await tx.applications.update({ ...made, callers: await callers(later) });
      });
  },
  'token.expiring': async () => {
    const made = await token({ createdAt: time - 300 * dayMs, expiresAt: time + dayMs });
    return () => revoke(made);
  },
  'token.old': async () => {
    facts.reminders = { ...facts.reminders, token: 365 };
    const made = await token({ createdAt: time - 400 * dayMs });
    return () => revoke(made);
  },
  'token.key-old': async () => {
    facts.reminders = { ...facts.reminders, key: 365 };
    facts.keySince = { 'api-token-hash': time - 400 * dayMs };
    return () => {
      facts.keySince = { 'api-token-hash': time };
    };
  },
  'token.former-key': async () => {
    facts.keySince = { 'api-token-hash': time - 40 * dayMs };
    facts.former = 1;
    return () => {
      facts.former = 0;
    };
  },
  'session.key-old': async () => {
    facts.reminders = { ...facts.reminders, key: 365 };
    facts.keySince = { 'session-hash': time - 400 * dayMs };
    return () => {
      facts.keySince = { 'session-hash': time };
    };
  },
  'administrator.recovered': async () => {
    const made = await token({ expiresAt: time + dayMs });
    await audited('administrator.recovered', made.id, { name: 'administrator' });
    return async () => {
      await revoke(made);
      await audited('token.revoked', made.id, { name: made.name });
    };
  },
  'key-store.disconnected': async () => {
    const { id: endpointId } = await endpoint();
    const id = newId(time);
    const connection = (state: 'FAILED' | 'CONNECTED') =>
      ({ state, errorCode: null, detail: null, source: 'cloud', since: time, checkedAt: time }) as never;
    await write((tx) =>
      tx.externalKeyStores.insert({
        ...{ id, tenantId, name: id, customKeyStoreId: `cks-${id}`, region: 'eu-central-1', endpointId },
        ...{ createdAt: time, connection: connection('FAILED'), integrity: 'ok' },
      }),
    );
    await write((tx) => tx.externalKeyStores.setConnection(id, connection('FAILED')));
    return () => write((tx) => tx.externalKeyStores.setConnection(id, connection('CONNECTED')));
  },
  'endpoint.failing': async () => {
    const { id: endpointId } = await endpoint();
    // Sequences grow with time.
    const refusals = Array.from({ length: 12 }, (_, at) => requestRecord(time - 12 + at));
    await write((tx) =>
      tx.requests.append(refusals.map((each) => ({ ...each, endpointId, status: 403, errorName: 'AccessDenied' }))),
    );
    return () => {
      time += 6 * 60_000;
    };
  },
  'endpoint.late': async () => {
    const { id } = await endpoint();
    facts.hours.set(id, { ...hour, over250Ms: 1 });
    return () => facts.hours.set(id, hour);
  },
  'endpoint.slow': async () => {
    const { id } = await endpoint();
    facts.hours.set(id, { ...hour, over100Ms: 11 });
    return () => facts.hours.set(id, hour);
  },
  'endpoint.tampered': async () => {
    const { id } = await endpoint();
    const file = new DatabaseSync(join(folder, 'dke.db'));
    const [before] = file.prepare('select row_mac as mac from endpoints where id = ?').all(id) as { mac: string }[];
    const put = (mac: string) => file.prepare('update endpoints set row_mac = ? where id = ?').run(mac, id);
    put('other');
    return () => {
      put(before?.mac ?? '');
      file.close();
    };
  },
  'endpoint.credential-unused': async () => {
    const { credentials } = await endpoint({}, [10, true], [8, false]);
    return () => write((tx) => tx.endpoints.touchCredential(credentials[1]?.id ?? '', time));
  },
  'approval.pending': async () => {
    const approval = {
      ...{
        id: newId(time),
        tenantId,
        kind: 'key.delete',
        subject: { kind: 'key', id: 'k', name: 'k' },
        parameters: {},
      },
      ...{
        impact: {},
        rules: [],
        fingerprint: 'f',
        state: 'pending',
        requestedBy: { kind: 'token', id: 'a', name: 'a' },
      },
      ...{ requestedAt: time, expiresAt: time + dayMs, endedAt: null, decisions: [], missing: 1, integrity: 'ok' },
    } as unknown as Parameters<Repositories['approvals']['insert']>[0];
    await write((tx) => tx.approvals.insert(approval));
    return () =>
      write(async (tx) => {
        await tx.approvals.get(everyTenant, approval.id);
        await tx.approvals.update({ ...approval, state: 'rejected', endedAt: time });
      });
  },
  'dual-control.unsatisfiable': async () => {
    const dualControl = { actions: ['delete'], approvers: null, required: 1 } as never;
    const made = await vault({ dualControl });
    return () =>
      write(async (tx) => {
        await tx.vaults.get(tenantId, made.id);
        await tx.vaults.update({ ...made, dualControl: null });
      });
  },
  'audit.sink-behind': async () => {
    facts.sinks = [sink({ failure: { since: time - 3_600_000, message: 'away' } })];
    return () => {
      facts.sinks = [sink({})];
    };
  },
  'audit.sink-forked': async () => {
    facts.sinks = [sink({ fork: { record: 1, at: time } })];
    return () => {
      time += 8 * dayMs;
    };
  },
  'audit.checkpoint-stale': async () => {
    await audited('administrator.recovered', 'stale', { name: 'a' });
    time += 3_600_000;
    return () =>
      write(async (tx) => tx.audit.insertCheckpoint({ size: await tx.audit.size(), at: time, note: 'note' }));
  },
  'audit.key-old': async () => {
    facts.auditKeySince = time - 740 * dayMs;
    return () => {
      facts.auditKeySince = time;
    };
  },
  'snapshot.failed': async () => {
    await snapshot(1, true);
    return () => snapshot(0);
  },
  'snapshot.old': async () => {
    await snapshot(10);
    return () => snapshot(0);
  },
  'snapshot.none': async () => {
    time += 2 * dayMs;
    await key(0);
    return () => snapshot(0);
  },
  'snapshot.unopened': async () => {
    await snapshot(10);
    return () => write((tx) => rememberOpened(tx, tenantId, time));
  },
  'snapshot.folder-missing': async () => {
    facts.isAway = true;
    return () => {
      facts.isAway = false;
    };
  },
  'backup.old': async () => {
    await audited('administrator.recovered', 'first', { name: 'a' });
    time += 10 * dayMs;
    facts.reminders = { ...facts.reminders, backup: 7 };
    return () => outside('service-backup', null);
  },
  'root.backup-old': async () => {
    await outside('root-backup', 1);
    facts.rootEpoch = 2;
    return () => outside('root-backup', 2);
  },
  'setup.risk-accepted': async () => {
    const confirmed = { at: time, by: 'anna' };
    const step = (state: 'confirmed' | 'done') => [{ step: 'audit-sinks', state, finding: '', confirmed }] as const;
    await write((tx) => tx.settings.set('setup:audit-sinks', JSON.stringify(confirmed)));
    facts.steps = step('confirmed');
    return () => {
      facts.steps = step('done');
    };
  },
  'erasure.blocked': async () => {
    const blockers = { since: time, nodes: ['one'], standbys: [], snapshots: [], records: [] };
    facts.erasure = { state: 'blocked', blockers, failure: null, waitsFor: null };
    return () => {
      facts.erasure = { state: 'idle', blockers: null, failure: null, waitsFor: null };
    };
  },
  'erasure.failed': async () => {
    facts.erasure = { state: 'failed', blockers: null, failure: 'the disk is full', waitsFor: null };
    return () => {
      facts.erasure = { state: 'idle', blockers: null, failure: null, waitsFor: null };
    };
  },
  'erasure.copies-left': async () => {
    const { id } = await key(0, { state: 'destroyed', destroyedAt: time - dayMs });
    await write((tx) => tx.decisions.set('erasure-covered', String(time)));
    return () => changeKey(id, { unrecoverableAt: time });
  },
  'health.failing': async () => {
    const check = (healthy: boolean) => [{ name: 'store', healthy, detail: 'no', durationMs: 1 }] as const;
    facts.checks = check(false);
    return () => {
      facts.checks = check(true);
    };
  },
  'memory.unlocked': async () => {
    facts.locked = false;
    return () => {
      facts.locked = true;
    };
  },
  'requests.sink-lost': async () => {
    facts.sinks = [sink({ lost: 3, lostAt: time })];
    return () => {
      time += 25 * 3_600_000;
    };
  },
  'requests.dropped': async () => {
    facts.dropped = 3;
    return () => {
      facts.dropped = 0;
    };
  },
  'clock.jumped': async () => {
    facts.doubt = { ahead: 3_600_000 };
    return () => {
      facts.doubt = null;
    };
  },
  'log.failing': async () => {
    facts.logFailure = { since: time, message: 'ENOSPC', lost: 1 };
    return () => {
      facts.logFailure = null;
    };
  },
  'node.offline': async () => {
    const node = (state: 'active' | 'offline') => [{ id: 'n1', name: 'one', state, heartbeatAt: time }];
    facts.nodes = node('offline');
    return () => {
      facts.nodes = node('active');
    };
  },
};

test.each(notificationKindNames)('%s', async (kind) => {
  expect(notificationRow(kind).end).not.toBe('');
  facts = fresh();
  const tenant = newTenant(`tenant of ${kind}`, time);
  tenantId = tenant.id;
  await write((tx) => tx.tenants.insert(tenant));
  const open = async () => {
    await watch().checkAll();
    const all = await store.read.notifications.listOpen(everyTenant, { kind }, { limit: 1000 });
    return new Set(all.map(({ subject }) => subject.id));
  };
  // A checkpoint covers the audit records of other tests, which would otherwise notify.
  await write(async (tx) => {
    const size = await tx.audit.size();
    if (size > ((await tx.audit.latestCheckpoint())?.size ?? 0))
      await tx.audit.insertCheckpoint({ size, at: time, note: newId(time) });
  });
  const before = await open();
  const end = await ends[kind]();
  const raised = [...(await open())].filter((id) => !before.has(id));
  expect([complaints, raised.length]).toEqual([[], 1]);
  await end();
  expect([...(await open())].filter((id) => raised.includes(id))).toEqual([]);
});
