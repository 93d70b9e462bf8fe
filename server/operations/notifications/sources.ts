// What people are told about, and how it is found out. Hourly the age of keys, for which every key is read; the rest each minute, so that what
// an operator has fixed is closed. Pages are short, so that a store with many rows delays no other work.

import { X509Certificate } from 'node:crypto';
import { toRfc3339 } from '../../base/clock.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { mayApprove } from '../../domain/dual-control.ts';
import {
  type Condition,
  credentialDays,
  dayMs,
  type NotificationKind,
  notificationKinds,
  rotationProfiles,
} from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Vault } from '../../domain/vault.ts';
import type { LogState } from '../../ports/log.ts';
import type { Ports } from '../../ports/ports.ts';
import type { KeyVersionAge } from '../../ports/store.ts';
import type { Window } from '../../ports/window.ts';
import { listIdentities } from '../access/identities.ts';
import type { LogForwarding } from '../audit/forward-logs.ts';
import type { Operations } from '../index.ts';
import type { XksLatency } from '../requests/xks-latency.ts';
import { hasOldRootCopy } from '../service/set-up-steps.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { ageSources, type ReminderAges } from './age-sources.ts';
import { type CertificateViews, certificateSources } from './certificate-sources.ts';
import { keyStoreSources } from './key-store-sources.ts';
import { snapshotSources } from './snapshot-sources.ts';
import type { NotificationSource } from './watch.ts';

export interface NotificationViews extends CertificateViews {
  readonly forwarding: Pick<LogForwarding, 'state'>;
  readonly latency: Pick<XksLatency, 'lastHour'>;
  readonly health: Operations['health'];
  readonly logState: () => LogState;
  /** By which snapshots are made; null: none is made by the clock. */
  readonly schedule: string | null;
  readonly reminders: ReminderAges;
  readonly folder: { readonly away: () => boolean; readonly archive: { readonly directory: string } };
}

/** A new credential is used within this, or the change-over is stuck. */
const unusedCredentialDays = 7;

/** How long it is shown that an administrator was created on the host. */
const createdDays = 30;
const minuteMs = 60_000;
const service = { kind: 'service', id: 'service', name: 'service' } as const;

/** Of one statement: little enough that a request that comes in meanwhile does not notice. */
const pageSize = 50;

/** Every item of a list by id. */
const all = <T extends { readonly id: string }>(list: (window: Window) => Promise<readonly T[]>): AsyncGenerator<T> =>
  each(list, byId, fewAtOnce);

const certificatesOf = (pem: string): readonly X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

export const createSources = (
  {
    store,
    clock,
    deadlines,
    erasure,
    core,
    directory,
    root,
    ring,
    fleet,
  }: Pick<Ports, 'store' | 'clock' | 'deadlines' | 'erasure' | 'core' | 'directory' | 'root' | 'ring' | 'fleet'>,
  {
    certificates,
    certificateFault,
    forwarding,
    latency,
    health,
    logState,
    folder,
    schedule,
    reminders,
  }: NotificationViews,
): readonly NotificationSource[] => {
  const { read } = store;
  /** Oldest of what is exchanged quarterly. */
  const exchangeDue = (
    kind: 'endpoint.credential-due' | 'application.access-guid-due',
    owner: { readonly tenantId: string; readonly id: string; readonly name: string },
    subjectKind: string,
    made: readonly number[],
  ): readonly Condition[] =>
    made.length === 0
      ? []
      : [
          {
            kind,
            tenantId: owner.tenantId,
            subject: { kind: subjectKind, id: owner.id, name: owner.name },
            harmAt: Math.min(...made) + credentialDays * dayMs,
            details: { since: toRfc3339(Math.min(...made)) },
          },
        ];

  const rotation = async (): Promise<readonly Condition[]> => {
    const now = clock.now();
    const youngest = Math.min(...Object.values(rotationProfiles).map(({ fromDays }) => fromDays));
    const due = new Map<
      string,
      { vault: Pick<Vault, 'id' | 'tenantId' | 'name' | 'profile'>; keys: number; oldest: number }
    >();
    let after: KeyVersionAge | null = null;
    for (;;) {
      const page: Awaited<ReturnType<typeof read.notifications.oldVersions>> = await read.notifications.oldVersions(
        now - youngest * dayMs,
        after,
        pageSize,
      );
      for (const { createdAt, vault } of page) {
        if (vault === null || createdAt >= now - rotationProfiles[vault.profile].fromDays * dayMs) continue;
        const own = due.get(vault.id);
        // The oldest come first.
        if (own === undefined) due.set(vault.id, { vault, keys: 1, oldest: createdAt });
        else own.keys += 1;
      }
      after = page.at(-1) ?? null;
      if (page.length < pageSize) break;
    }
    return [...due.values()].map(({ vault, keys, oldest }) => {
      const { fromDays, toDays } = rotationProfiles[vault.profile];
      return {
        kind: 'key.rotation-due',
        tenantId: vault.tenantId,
        subject: { kind: 'vault', id: vault.id, name: vault.name },
        harmAt: oldest + toDays * dayMs,
        leadDays: [toDays - fromDays, 30],
        details: { keys, oldest: toRfc3339(oldest), profile: vault.profile },
      };
    });
  };

  const applications = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    for await (const application of all((window) => read.applications.list(everyTenant, {}, window))) {
      if (application.state !== 'enabled') continue;
      const guids = await read.accessGuids.list(application.id);
      const live = guids.filter(({ removedAt }) => removedAt === null).map(({ createdAt }) => createdAt);
      found.push(...exchangeDue('application.access-guid-due', application, 'application', live));
      const expiry = application.callers.certificates.flatMap(certificatesOf).map(({ validTo }) => Date.parse(validTo));
      if (expiry.length > 0)
        found.push({
          kind: 'client-certificate.ending',
          tenantId: application.tenantId,
          subject: { kind: 'application', id: application.id, name: application.name },
          harmAt: Math.min(...expiry),
          details: { endsAt: toRfc3339(Math.min(...expiry)) },
        });
      const newest = await read.objects.newestMasterKey(application.id);
      const key = newest === undefined ? undefined : await read.keys.get(application.tenantId, newest);
      if (key === undefined || key.state === 'destroyed') continue;
      const vault = await read.vaults.get(application.tenantId, key.vaultId);
      const { fromDays, toDays } = rotationProfiles[vault?.profile ?? 'standard'];
      found.push({
        kind: 'master-key.rotation-due',
        tenantId: application.tenantId,
        subject: { kind: 'application', id: application.id, name: application.name },
        harmAt: key.createdAt + toDays * dayMs,
        leadDays: [toDays - fromDays, 30],
        details: { key: key.name, since: toRfc3339(key.createdAt), profile: vault?.profile ?? 'standard' },
      });
    }
    return found;
  };

  const endpoints = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    for await (const endpoint of all((window) => read.endpoints.list(everyTenant, window))) {
      const { id, name, tenantId, credentials, settings } = endpoint;
      const made = credentials.map(({ createdAt }) => createdAt);
      found.push(...exchangeDue('endpoint.credential-due', endpoint, 'endpoint', made));
      const newest = credentials.toSorted((one, other) => other.createdAt - one.createdAt)[0];
      if (credentials.length > 1 && newest?.lastUsedAt === null)
        found.push({
          kind: 'endpoint.credential-unused',
          tenantId,
          subject: { kind: 'endpoint', id, name },
          harmAt: newest.createdAt + unusedCredentialDays * dayMs,
          details: { accessKeyId: newest.accessKeyId },
        });
      const ends = certificatesOf(settings.clientCertificate?.authorities ?? '').map(({ validTo }) =>
        Date.parse(validTo),
      );
      if (ends.length > 0)
        found.push({
          kind: 'client-authority.ending',
          tenantId,
          subject: { kind: 'endpoint', id, name },
          harmAt: Math.min(...ends),
          details: { endsAt: toRfc3339(Math.min(...ends)) },
        });
    }
    return found;
  };

  const tokens = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const now = clock.now();
    for await (const token of all((window) => read.tokens.list(everyTenant, window))) {
      const { id, name, createdAt, expiresAt, revokedAt } = token;
      // A week after its end it is no longer of interest.
      if (expiresAt === null || revokedAt !== null || expiresAt < now - 7 * dayMs) continue;
      // One that was made for a day is not announced for a month.
      const life = expiresAt - createdAt;
      found.push({
        kind: 'token.expiring',
        tenantId: token.tenantId ?? serviceTenantId,
        subject: { kind: 'token', id, name },
        harmAt: expiresAt,
        leadDays: notificationKinds['token.expiring'].leadDays.filter((days) => days * dayMs * 3 <= life),
        details: { expiresAt: toRfc3339(expiresAt) },
      });
    }
    return found.filter(({ leadDays = [], harmAt }) => leadDays.length > 0 || (harmAt ?? 0) <= now);
  };

  /** A way around every sign-in: all administrators hear of it, also of one whose token is over by now. */
  const recovered = async (): Promise<readonly Condition[]> => {
    const from = clock.now() - createdDays * dayMs;
    const filter = { kind: 'administrator.recovered', from, order: 'newest' } as const;
    return (await read.audit.list(everyTenant, filter, { limit: pageSize })).map(
      ({ subjectId, at, actorName, details }) => ({
        kind: 'administrator.recovered',
        tenantId: serviceTenantId,
        subject: { kind: 'token', id: subjectId, name: `${String(details.name)}, by ${actorName}` },
        harmAt: at,
        details: { ...details },
      }),
    );
  };

  const dualControl = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const ableIn = new Map<string, Awaited<ReturnType<typeof listIdentities>>>();
    for await (const { id, name, tenantId, state, dualControl: rule } of all((window) =>
      read.vaults.list(everyTenant, window),
    )) {
      if (rule === null || state === 'deleted') continue;
      const able = ableIn.get(tenantId) ?? (await listIdentities(read, 'approvals:decide', tenantId, clock.now()));
      ableIn.set(tenantId, able);
      const approvers = able.filter((each) => mayApprove(rule, each.id)).length;
      if (approvers < rule.required)
        found.push({
          kind: 'dual-control.unsatisfiable',
          tenantId,
          subject: { kind: 'vault', id, name },
          harmAt: null,
          details: { required: rule.required, approvers },
        });
    }
    return found;
  };

  const approvals = async (): Promise<readonly Condition[]> =>
    (await read.approvals.listOpen()).map(({ id, kind, tenantId, subject, expiresAt, missing, requestedBy }) => ({
      kind: 'approval.pending',
      tenantId,
      subject: { kind: 'approval', id, name: subject.name },
      harmAt: expiresAt,
      details: { operation: kind, requestedBy: requestedBy.name, missing },
    }));

  const platform = async (): Promise<readonly Condition[]> => {
    const now = clock.now();
    const found: Condition[] = [];
    for (const { name, target, log, lag, lost, lostAt, failure } of await forwarding.state()) {
      if (lostAt !== null && now - lostAt < 24 * 60 * minuteMs)
        found.push({
          kind: 'requests.sink-lost',
          tenantId: serviceTenantId,
          subject: { kind: 'audit-sink', id: name, name },
          harmAt: lostAt,
          details: { target, lag, lost },
        });
      if (failure !== null && now - failure.since > 5 * minuteMs)
        found.push({
          kind: 'audit.sink-behind',
          tenantId: serviceTenantId,
          subject: { kind: 'audit-sink', id: name, name },
          harmAt: failure.since,
          details: { target, log, lag, message: failure.message.slice(0, 200) },
        });
    }
    const size = await read.audit.size();
    const checkpoint = await read.audit.latestCheckpoint();
    const covered = checkpoint?.size ?? 0;
    const [first] =
      size > covered
        ? await read.audit.list(everyTenant, { order: 'oldest' }, { after: String(covered), limit: 1 })
        : [];
    if (first !== undefined && now - first.at > 5 * minuteMs)
      found.push({
        kind: 'audit.checkpoint-stale',
        tenantId: serviceTenantId,
        subject: service,
        harmAt: first.at,
        details: { records: size - covered },
      });
    // During a run the new root key is not the only one yet.
    if (root.previous === undefined && (await hasOldRootCopy(read, root)))
      found.push({
        kind: 'root.backup-old',
        tenantId: serviceTenantId,
        subject: service,
        harmAt: null,
        details: { rootEpoch: root.current.epoch },
      });
    const { state, hold, failure } = erasure.state();
    if (state === 'failed')
      found.push({
        kind: 'erasure.failed',
        tenantId: serviceTenantId,
        subject: service,
        harmAt: null,
        details: { reason: failure ?? '' },
      });
    if (state === 'held' && hold !== null)
      found.push({
        kind: 'erasure.held',
        tenantId: serviceTenantId,
        subject: service,
        harmAt: hold.since,
        details: {
          records: hold.records.length,
          nodes: hold.nodes,
          standbys: hold.standbys,
          snapshots: hold.snapshots,
        },
      });
    return found;
  };

  /** Of the node that has the duty to look. */
  const ownState = async (): Promise<readonly Condition[]> => {
    const own = (kind: NotificationKind, details: Condition['details'], name: string = service.name): Condition => ({
      kind,
      tenantId: serviceTenantId,
      subject: { ...service, name },
      harmAt: null,
      details,
    });
    const failed = (await health()).checks.filter(({ healthy }) => !healthy);
    const { dropped } = directory.requestLog();
    const time = await deadlines.state();
    const { failure: logFailure } = logState();
    return [
      ...(failed.length === 0
        ? []
        : [
            own(
              'health.failing',
              Object.fromEntries(failed.map(({ name, detail }) => [name, detail.slice(0, 200)])),
              failed.map(({ name }) => name).join(', '),
            ),
          ]),
      ...(core.memoryStatus().locked ? [] : [own('memory.unlocked', {})]),
      ...(dropped === 0 ? [] : [own('requests.dropped', { dropped })]),
      ...(time.doubt === null
        ? []
        : [own('clock.doubted', { expected: toRfc3339(time.now), aheadSeconds: Math.round(time.doubt.ahead / 1000) })]),
      ...(folder.away() ? [own('snapshot.folder-away', {}, folder.archive.directory)] : []),
      ...(logFailure === null
        ? []
        : [
            own('log.failing', {
              since: toRfc3339(logFailure.since),
              reason: logFailure.message.slice(0, 200),
              lost: logFailure.lost,
            }),
          ]),
      ...(await fleet.nodes())
        .filter(({ state }) => state === 'silent')
        .map(
          ({ id, name, heartbeatAt }): Condition => ({
            kind: 'node.silent',
            tenantId: serviceTenantId,
            subject: { kind: 'node', id, name },
            harmAt: heartbeatAt,
            details: {},
          }),
        ),
    ];
  };

  return [
    { about: 'the age of keys', kinds: ['key.rotation-due'], every: 'hour', look: rotation },
    {
      about: 'the age of master keys and access_guids',
      kinds: ['master-key.rotation-due', 'application.access-guid-due', 'client-certificate.ending'],
      every: 'hour',
      look: applications,
    },
    {
      about: 'the age of credentials',
      kinds: ['endpoint.credential-due', 'endpoint.credential-unused', 'client-authority.ending'],
      every: 'minute',
      look: endpoints,
    },
    ...certificateSources({ read, clock }, { certificates, certificateFault }),
    { about: 'the end of tokens', kinds: ['token.expiring'], every: 'minute', look: tokens },
    { about: 'tokens made on the host', kinds: ['administrator.recovered'], every: 'minute', look: recovered },
    { about: 'dual control', kinds: ['dual-control.unsatisfiable'], every: 'minute', look: dualControl },
    ...snapshotSources({ read, clock }, schedule),
    ...ageSources({ store, clock, ring }, reminders),
    ...keyStoreSources({ read, clock }, latency),
    { about: 'requests for approval', kinds: ['approval.pending'], every: 'minute', look: approvals },
    {
      about: 'audit log and erasure',
      kinds: [
        'audit.sink-behind',
        'requests.sink-lost',
        'audit.checkpoint-stale',
        'root.backup-old',
        'erasure.held',
        'erasure.failed',
      ],
      every: 'minute',
      look: platform,
    },
    {
      about: 'the state of the service',
      kinds: [
        'health.failing',
        'memory.unlocked',
        'requests.dropped',
        'clock.doubted',
        'log.failing',
        'snapshot.folder-away',
        'node.silent',
      ],
      every: 'minute',
      look: ownState,
    },
  ];
};
