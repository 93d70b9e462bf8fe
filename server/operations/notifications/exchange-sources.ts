// What is exchanged by its age: keys, access_guids and credentials; and the certificates of
// callers, which end.

import { X509Certificate } from 'node:crypto';
import { isUnreadableMasterKey } from '../../base/master-keys.ts';
import type { Clock } from '../../base/time.ts';
import { toRfc3339 } from '../../base/time.ts';
import {
  type Condition,
  credentialDays,
  dayMs,
  notificationKinds,
  rotationProfiles,
} from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Vault } from '../../domain/vault.ts';
import type { KeyVersionAge, Repositories } from '../../ports/store.ts';
import { nameFromLabel } from '../shared/names.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import type { NotificationSource } from './watch.ts';

/** A new credential is used within this, or the change-over is stuck. */
const unusedCredentialDays = 7;

/**
 * Rows that one statement reads: few enough that a request that arrives in the meantime notices no
 * delay.
 */
const pageSize = 50;

const certificatesOf = (pem: string): readonly X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

/** The times up to `latest`, which cause the condition: RFC 3339 text, oldest first. */
const upTo = (times: readonly number[], latest: number): readonly string[] =>
  times
    .filter((each) => each <= latest)
    .sort((one, other) => one - other)
    .map(toRfc3339);

/** When certificates of a caller end. */
const expiry = (
  kind: 'client-certificate.expiring' | 'client-authority.expiring',
  owner: { readonly tenantId: string; readonly id: string; readonly name: string },
  subjectKind: string,
  ends: readonly number[],
  now: number,
): readonly Condition[] =>
  ends.length === 0
    ? []
    : [
        {
          kind,
          tenantId: owner.tenantId,
          subject: { kind: subjectKind, id: owner.id, name: owner.name },
          harmAt: Math.min(...ends),
          details: {
            endsAt: toRfc3339(Math.min(...ends)),
            expired: upTo(ends, now),
            expiring: upTo(ends, now + notificationKinds[kind].leadDays[0] * dayMs),
          },
        },
      ];

/** Oldest of what is exchanged quarterly. */
const exchangeDue = (
  kind: 'endpoint.credential-due' | 'application.access-guid-due',
  owner: { readonly tenantId: string; readonly id: string; readonly name: string },
  subjectKind: string,
  made: readonly number[],
  now: number,
): readonly Condition[] =>
  made.length === 0
    ? []
    : [
        {
          kind,
          tenantId: owner.tenantId,
          subject: { kind: subjectKind, id: owner.id, name: owner.name },
          harmAt: Math.min(...made) + credentialDays * dayMs,
          details: {
            since: toRfc3339(Math.min(...made)),
            due: upTo(made, now - (credentialDays - notificationKinds[kind].leadDays[0]) * dayMs),
          },
        },
      ];

const rotation = async (read: Repositories, now: number): Promise<readonly Condition[]> => {
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

const applications = async (read: Repositories, now: number): Promise<readonly Condition[]> => {
  const found: Condition[] = [];
  for await (const application of each((window) => read.applications.list(everyTenant, {}, window), byId, fewAtOnce)) {
    if (application.state !== 'enabled') continue;
    const guids = await read.accessGuids.list(application.id);
    const live = guids.filter(({ removedAt }) => removedAt === null).map(({ createdAt }) => createdAt);
    found.push(...exchangeDue('application.access-guid-due', application, 'application', live, now));
    const ends = application.callers.certificates.flatMap(certificatesOf).map(({ validTo }) => Date.parse(validTo));
    found.push(...expiry('client-certificate.expiring', application, 'application', ends, now));
    const newest = await read.objects.newestMasterKey(application.id);
    const key = newest === undefined ? undefined : await read.keys.stored(application.tenantId, newest);
    if (key === undefined || key.state === 'destroyed') continue;
    const vault = await read.vaults.stored(application.tenantId, key.vaultId);
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

/**
 * Master keys that cannot decrypt: created by a version before the rule against them, or restored
 * from a snapshot of such a version.
 */
const unreadableMasterKeys = async (read: Repositories): Promise<readonly Condition[]> => {
  const found: Condition[] = [];
  for (let after = 0; ; ) {
    const page = await read.objects.listWithoutDecryption(after, pageSize);
    for (const object of page) {
      const { id, tenantId, label, handle, wrappedSensitive, integrity } = object;
      after = handle;
      if (integrity !== 'ok' || !isUnreadableMasterKey(object)) continue;
      found.push({
        kind: 'master-key.unreadable',
        tenantId,
        subject: { kind: 'key', id, name: nameFromLabel(label) },
        harmAt: null,
        details: { repairable: !wrappedSensitive },
      });
    }
    if (page.length < pageSize) return found;
  }
};

const endpoints = async (read: Repositories, now: number): Promise<readonly Condition[]> => {
  const found: Condition[] = [];
  for await (const endpoint of each((window) => read.endpoints.list(everyTenant, window), byId, fewAtOnce)) {
    const { id, name, tenantId, credentials, settings } = endpoint;
    const made = credentials.map(({ createdAt }) => createdAt);
    found.push(...exchangeDue('endpoint.credential-due', endpoint, 'endpoint', made, now));
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
    found.push(...expiry('client-authority.expiring', endpoint, 'endpoint', ends, now));
  }
  return found;
};

export const exchangeSources = ({
  read,
  clock,
}: {
  readonly read: Repositories;
  readonly clock: Pick<Clock, 'now'>;
}): readonly NotificationSource[] => [
  { about: 'the age of keys', kinds: ['key.rotation-due'], every: 'hour', look: () => rotation(read, clock.now()) },
  {
    about: 'master keys that cannot decrypt',
    kinds: ['master-key.unreadable'],
    every: 'hour',
    look: () => unreadableMasterKeys(read),
  },
  {
    about: 'the age of master keys and access_guids',
    kinds: ['master-key.rotation-due', 'application.access-guid-due', 'client-certificate.expiring'],
    every: 'hour',
    look: () => applications(read, clock.now()),
  },
  {
    about: 'the age of credentials',
    kinds: ['endpoint.credential-due', 'endpoint.credential-unused', 'client-authority.expiring'],
    every: 'minute',
    look: () => endpoints(read, clock.now()),
  },
];
