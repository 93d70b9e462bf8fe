// Key migration as one entry each, out of the audit log: an application made a master key, and what
// it did from then on. A database that migrates from a local wallet makes its first master key here
// and encrypts its keys under it; a rotation makes another one.

import type { TenantActor } from '../../domain/actor.ts';
import { type AuditEvent, readableDetails } from '../../domain/audit-event.ts';
import type { Page } from '../../domain/page.ts';
import type { TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { checkSequenceCursor, limitOf } from '../shared/paging.ts';
import type { KeyMigration, MigrationFilter } from './audit-operations.ts';

/**
 * What begins so long after a key was made still belongs to its entry, until the next key is made.
 */
const belongsForMs = 600_000;
/** Records of keys that one request reads. */
const mostLookedAt = 2_000;
const step = 200;

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

export const readMigrations = ({ store }: Pick<Ports, 'store'>) => {
  const { audit } = store.read;

  const migrationOf = async (reach: TenantScope, made: AuditEvent, applicationId: string): Promise<KeyMigration> => {
    const own = { kind: 'key.created', actorId: applicationId, order: 'oldest' } as const;
    const [next] = await audit.list(reach, own, { after: String(made.sequence), limit: 1 });
    const [first] = await audit.list(reach, own, { limit: 1 });
    const until = Math.min(made.at + belongsForMs, next?.at ?? Number.MAX_SAFE_INTEGER);
    const summaries = await audit.list(
      reach,
      { kind: 'application.used', subjectId: applicationId, order: 'oldest' },
      { after: String(made.sequence), limit: 100 },
    );
    const uses: Record<string, number> = {};
    const records = [made.sequence];
    let failures = 0;
    let lastAt = made.at;
    for (const { sequence, at, details } of summaries) {
      const begun = Date.parse(textOf(details.from) ?? '');
      if (!(begun < until)) break;
      records.push(sequence);
      lastAt = at;
      failures += typeof details.failures === 'number' ? details.failures : 0;
      for (const [use, count] of Object.entries(details.operations ?? {}))
        if (typeof count === 'number') uses[use] = (uses[use] ?? 0) + count;
    }
    const { details } = made;
    return {
      sequence: made.sequence,
      at: made.at,
      tenantId: made.tenantId,
      what: first?.sequence === made.sequence ? 'first-key' : 'further-key',
      applicationId,
      applicationName: made.actorName,
      appId: textOf(details.appId),
      host: textOf(details.host),
      process: textOf(details.process),
      keyId: made.subjectId,
      keyName: textOf(details.name) ?? made.subjectId,
      label: textOf(readableDetails(details).label),
      origin: textOf(details.origin),
      uses,
      failures,
      lastAt,
      records,
    };
  };

  return async (
    { reach }: TenantActor,
    { applicationId, from, to, after, limit }: MigrationFilter,
  ): Promise<Page<KeyMigration>> => {
    checkSequenceCursor({ after });
    const wanted = limitOf({ limit });
    const items: KeyMigration[] = [];
    let cursor = after;
    for (let looked = 0; looked < mostLookedAt; looked += step) {
      const page = await audit.list(
        reach,
        { kind: 'key.created', actorId: applicationId, from, to, order: 'newest' },
        { after: cursor, limit: step },
      );
      for (const made of page) {
        if (items.length === wanted) return { items, next: cursor ?? null };
        cursor = String(made.sequence);
        if (made.details.kind === 'master' && made.actorKind === 'application')
          items.push(await migrationOf(reach, made, made.actorId));
      }
      if (page.length < step) return { items, next: null };
    }
    return { items, next: cursor ?? null };
  };
};
