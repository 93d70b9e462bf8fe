// What people are reminded of by age: tokens without an end, the backup of the whole service, and
// the service's own keys.

import { serviceTenantId } from '../../base/ids.ts';
import { toRfc3339 } from '../../base/time.ts';
import { auditKeyDays, type Condition, dayMs } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { HashKey } from '../../ports/key-ring.ts';
import type { Ports } from '../../ports/ports.ts';
import { keySince } from '../audit/audit-origin.ts';
import { newestBackup } from '../copies/take-receipts.ts';

import { byId, each, fewAtOnce } from '../shared/paging.ts';
import type { NotificationSource } from './watch.ts';

/** In days; 0: never. */
export interface ReminderAges {
  readonly token: number;
  /** Age at which keys that hash sessions or API tokens are due for rotation. */
  readonly key: number;
  /** 0 also where `dke backup` does not back up the database. */
  readonly backup: number;
}

/** A former key of API tokens may be accepted this long. */
const formerKeyDays = 30;
/** A new service has this long until its first backup. */
const firstBackupDays = 1;
const service = { kind: 'service', id: 'service' } as const;

export const ageSources = (
  { store, clock, ring }: Pick<Ports, 'store' | 'clock' | 'ring'>,
  { token: tokenDays, key: keyDays, backup: backupDays }: ReminderAges,
): readonly NotificationSource[] => {
  const { read } = store;

  const oldTokens = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    if (tokenDays === 0) return found;
    const before = clock.now() - tokenDays * dayMs;
    for await (const { id, name, tenantId, createdAt, expiresAt, revokedAt, lastUsedAt } of each(
      (window) => read.tokens.list(everyTenant, window),
      byId,
      fewAtOnce,
    )) {
      if (expiresAt !== null || revokedAt !== null || createdAt > before) continue;
      found.push({
        kind: 'token.old',
        tenantId: tenantId ?? serviceTenantId,
        subject: { kind: 'token', id, name },
        harmAt: createdAt + tokenDays * dayMs,
        details: {
          createdAt: toRfc3339(createdAt),
          lastUsedAt: lastUsedAt === null ? null : toRfc3339(lastUsedAt),
        },
      });
    }
    return found;
  };

  const backup = async (): Promise<readonly Condition[]> => {
    if (backupDays === 0) return [];
    const last = await newestBackup(read, 'service-backup');
    const [first] = await read.audit.list(everyTenant, { order: 'oldest' }, { limit: 1 });
    if (last === null && first === undefined) return [];
    const harmAt = last === null ? (first?.at ?? 0) + firstBackupDays * dayMs : last.at + backupDays * dayMs;
    if (harmAt > clock.now()) return [];
    const name = last === null ? 'none was created' : `the last one was created at ${toRfc3339(last.at)}`;
    return [
      {
        kind: 'backup.old',
        tenantId: serviceTenantId,
        subject: { ...service, name },
        harmAt,
        details: { backupId: last?.id ?? null, at: last === null ? null : toRfc3339(last.at) },
      },
    ];
  };

  const auditKey = async (): Promise<readonly Condition[]> => {
    const since = await keySince(read, ring.auditKeySince());
    if (since === null) return [];
    return [
      {
        kind: 'audit.key-old',
        tenantId: serviceTenantId,
        subject: { ...service, name: service.id },
        harmAt: since + auditKeyDays * dayMs,
        details: { since: toRfc3339(since) },
      },
    ];
  };

  const hashKey = async (name: HashKey, kind: 'token.key-old' | 'session.key-old'): Promise<readonly Condition[]> => {
    await ring.refreshHashKey({ read }, name);
    const since = keyDays === 0 ? null : await keySince(read, ring.hashKey(name).since);
    if (since === null) return [];
    return [
      {
        kind,
        tenantId: serviceTenantId,
        subject: { ...service, name: service.id },
        harmAt: since + keyDays * dayMs,
        details: { since: toRfc3339(since) },
      },
    ];
  };

  const formerKey = async (): Promise<readonly Condition[]> => {
    await ring.refreshHashKey({ read }, 'api-token-hash');
    const { since, former } = ring.hashKey('api-token-hash');
    if (since === null || former === 0 || since + formerKeyDays * dayMs > clock.now()) return [];
    return [
      {
        kind: 'token.former-key',
        tenantId: serviceTenantId,
        subject: { ...service, name: service.id },
        harmAt: since + formerKeyDays * dayMs,
        details: { since: toRfc3339(since), formerKeys: former },
      },
    ];
  };

  return [
    {
      about: 'the key of API tokens',
      kinds: ['token.key-old'],
      every: 'minute',
      look: () => hashKey('api-token-hash', 'token.key-old'),
    },
    {
      about: 'the key of sessions',
      kinds: ['session.key-old'],
      every: 'minute',
      look: () => hashKey('session-hash', 'session.key-old'),
    },
    { about: 'a former key of API tokens', kinds: ['token.former-key'], every: 'minute', look: formerKey },
    { about: 'the age of tokens', kinds: ['token.old'], every: 'hour', look: oldTokens },
    { about: 'the backup of the service', kinds: ['backup.old'], every: 'minute', look: backup },
    { about: 'the key of the audit log', kinds: ['audit.key-old'], every: 'minute', look: auditKey },
  ];
};
