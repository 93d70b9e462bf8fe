// The name of the audit log, and since when a key of the service is used. Another database has
// another log, with another name.

import { newId } from '../../base/ids.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';

export const originSetting = 'audit-origin';

/** The log's name in its checkpoints. */
export const auditOrigin = async (repositories: Repositories): Promise<string> => {
  const origin = await repositories.decisions.get(originSetting);
  if (origin === undefined) throw new RangeError('the audit log has no name yet');
  return origin;
};

/**
 * Since when a key of the service is used. The first one: since the first record. Null: there is
 * none yet.
 */
export const keySince = async (from: Pick<Repositories, 'audit'>, since: number | null): Promise<number | null> =>
  since ?? (await from.audit.list(everyTenant, { order: 'oldest' }, { limit: 1 }))[0]?.at ?? null;

/** The log continues under a new name. A name contains an id, and with it the time. */
export const nameLog = async (tx: Repositories, now: number): Promise<void> => {
  await tx.decisions.set(originSetting, `dke/audit/${newId(now)}`);
};
