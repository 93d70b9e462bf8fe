// What people are reminded of by age: tokens without an end, the backup of the whole service, and the key that signs the audit log.

import { toRfc3339 } from '../../base/clock.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { auditKeyDays, type Condition, dayMs } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { auditKeySince } from '../audit/seal-audit-log.ts';
import { readServiceBackup } from '../service/service-backup.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import type { NotificationSource } from './watch.ts';

/** In days; 0: never. */
export interface ReminderAges {
  readonly token: number;
  /** 0 also where `dke backup` does not back up the database. */
  readonly backup: number;
}

/** A new service has this long until its first backup. */
const firstBackupDays = 1;
const service = { kind: 'service', id: 'service' } as const;

export const ageSources = (
  { store, clock, ring }: Pick<Ports, 'store' | 'clock' | 'ring'>,
  { token: tokenDays, backup: backupDays }: ReminderAges,
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
    const last = await readServiceBackup(read);
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
        details: { backupId: last?.backupId ?? null, at: last === null ? null : toRfc3339(last.at) },
      },
    ];
  };

  const auditKey = async (): Promise<readonly Condition[]> => {
    const since = await auditKeySince(read, ring);
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

  return [
    { about: 'the age of tokens', kinds: ['token.old'], every: 'hour', look: oldTokens },
    { about: 'the backup of the service', kinds: ['backup.old'], every: 'minute', look: backup },
    { about: 'the key of the audit log', kinds: ['audit.key-old'], every: 'minute', look: auditKey },
  ];
};
