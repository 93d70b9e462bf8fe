// Who uses a key, and when it was last used: a general-purpose key by the endpoints of key stores,
// a master key by its database application. It is asked before a key is deleted. The times are
// marks, written by the clock (housekeeping.ts, usage-log.ts).

import { toRfc3339 } from '../../base/time.ts';
import type { Key, KeyUse } from '../../domain/key.ts';
import type { Repositories } from '../../ports/store.ts';
import { showApplication, showGroup } from '../shared/find.ts';

/** Endpoints of one key that are read. */
const mostEndpoints = 1000;

const latest = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((time) => time !== null);
  return known.length === 0 ? null : Math.max(...known);
};

export const findKeyUse = async (
  from: Pick<Repositories, 'endpoints' | 'applications' | 'groups'>,
  key: Key,
): Promise<Omit<KeyUse, 'copies'>> => {
  const found = await from.endpoints.listByKey(key.tenantId, key.id, mostEndpoints);
  const endpoints = found
    .map(({ id, name, state, credentials, lastUsedAt }) => ({
      id,
      name,
      state,
      lastUsedAt,
      lastRequestAt: latest([lastUsedAt, ...credentials.map((credential) => credential.lastUsedAt)]),
    }))
    // A deleted endpoint matters only when the key was used through it.
    .filter(({ state, lastUsedAt }) => state !== 'deleted' || lastUsedAt !== null)
    .toSorted((one, other) => (other.lastUsedAt ?? 0) - (one.lastUsedAt ?? 0));
  const application = key.applicationId === null ? null : await showApplication(from, key.tenantId, key.applicationId);
  const group = application === null ? null : await showGroup(from, key.tenantId, application.groupId);
  return {
    keyId: key.id,
    firstUsedAt: key.firstUsedAt,
    lastUsedAt: key.lastUsedAt,
    endpoints,
    application:
      application === null || group === null
        ? null
        : { id: application.id, name: application.name, groupId: group.id, groupName: group.name },
  };
};

/** The part of it that a dry run and an approval request have. */
export const lastUse = ({ lastUsedAt, endpoints, application }: Omit<KeyUse, 'copies'>) => {
  const [last] = endpoints;
  const by = application?.name ?? (last?.lastUsedAt === null ? undefined : last?.name);
  return {
    lastUsedAt: lastUsedAt === null ? null : toRfc3339(lastUsedAt),
    lastUsedBy: lastUsedAt === null ? null : (by ?? null),
  };
};
