// Whom a destruction would hit: every instance that used an access_guid of the owning application,
// and the instances of the other applications of its group, which can use the key too.

import type { Key } from '../../domain/key.ts';
import type { BlastRadius, Instance, TdeApplication } from '../../domain/tde.ts';
import type { TenantScope } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { membersOf } from '../applications/move-application.ts';
import { copiesOf } from '../copies/copies-of.ts';

export const findBlastRadius = async (
  from: Pick<Repositories, 'applications' | 'instances' | 'keys' | 'tenants' | 'outsideCopies' | 'audit' | 'snapshots'>,
  application: TdeApplication,
  key: Key,
  /** The reach of the caller: only tenants within it are named. */
  reach: TenantScope,
): Promise<BlastRadius> => {
  const instances = await from.instances.list(application.id);
  const others: { id: string; name: string; instances: readonly Instance[] }[] = [];
  for (const other of await membersOf(from, application.tenantId, application.groupId))
    if (other.id !== application.id)
      others.push({ id: other.id, name: other.name, instances: await from.instances.list(other.id) });
  const all = [...instances, ...others.flatMap((other) => other.instances)];
  return {
    keyId: key.id,
    applicationId: application.id,
    applicationName: application.name,
    instances,
    groupApplications: others,
    appIds: [...new Set(instances.map((instance) => instance.appId))].sort(),
    hosts: [...new Set(all.map((instance) => instance.host))].sort(),
    lastUsedAt: all.reduce<number | null>(
      (latest, instance) => (latest === null || instance.lastUsedAt > latest ? instance.lastUsedAt : latest),
      null,
    ),
    copies: await copiesOf(from, key, reach),
  };
};

/** The part of it that an audit record has. */
export const blastRadiusSummary = (radius: BlastRadius) => ({
  appIds: radius.appIds.slice(0, 100),
  hosts: radius.hosts.slice(0, 100),
  instances: radius.instances.length,
  groupApplications: radius.groupApplications.slice(0, 100).map((other) => other.name),
  copies: radius.copies.count,
});
