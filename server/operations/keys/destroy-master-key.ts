// Destruction: the marker, both copies overwritten, the audit record, in one transaction; terminal.
// From the commit on every use fails. `unrecoverableAt` follows with the erasure run. No undelete
// exists.

import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Key } from '../../domain/key.ts';
import { nextState } from '../../domain/lifecycle.ts';
import type { BlastRadius, MasterKey } from '../../domain/tde.ts';
import type { TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals, CarriedOut } from '../approvals/governed-operation.ts';
import { findApplication, findVault, vaultsOf } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { blastRadiusSummary, findBlastRadius } from './blast-radius.ts';
import { destructionTime } from './destruction-time.ts';
import { findKeyUse, lastUse } from './key-use.ts';
import type { MasterKeyOperations } from './keys-operations.ts';
import { findMasterKey } from './master-key-view.ts';

/** Who asked, beyond the actor: the instance, when a database did it. */
export interface DestroyedBy {
  readonly appId?: string;
  readonly host?: string;
  readonly process?: string;
}

type DestroyPorts = Pick<Ports, 'store' | 'directory' | 'clock' | 'erasure' | 'usage'>;

interface Destroyed {
  readonly key: MasterKey;
  readonly blastRadius: BlastRadius;
}

/** The whole of it, inside a transaction. Who may ask for it is the caller's to check. */
export const destroyKeyIn =
  ({ directory, clock, erasure }: Pick<DestroyPorts, 'directory' | 'clock' | 'erasure'>) =>
  async (
    tx: Repositories,
    actor: Actor,
    tenantId: string,
    applicationId: string,
    keyId: string,
    by: DestroyedBy,
    /** Which tenants the answer names. */
    reach: TenantScope = tenantId,
  ): Promise<CarriedOut<Destroyed>> => {
    const application = await findApplication(tx, tenantId, applicationId);
    const before = await findMasterKey(tx, applicationId, await tx.keys.stored(tenantId, keyId));
    if (nextState(before.state, 'destroy') === null) throw new ServiceError('key-destroyed', 'the key is destroyed');
    const blastRadius = await findBlastRadius(tx, application, before, reach);
    const destroyedAt = await destructionTime(tx, clock);
    const key = await tx.keys.stored(tenantId, keyId);
    if (key === undefined) throw new ServiceError('key-not-found', 'master key not found');
    // A tampered row is written again here, with its destruction: its content no longer counts.
    const after: Key = { ...key, state: 'destroyed', destroyedAt, reimportedAt: null, integrity: 'ok' };
    await tx.keys.update(after);
    for (const { version } of await tx.keys.versions(keyId))
      for (const copy of ['vault-copy', 'sealed-copy'] as const)
        await tx.records.wipe({ tenantId: key.tenantId, objectId: keyId, version, class: copy });
    await tx.objects.destroy(before.handle, destroyedAt);
    await recordEvent(tx, 'key.destroyed', actor, about('key', key), {
      name: key.name,
      kind: key.kind,
      label: before.label,
      applicationId,
      ...by,
      destroyedAt: toRfc3339(destroyedAt),
      blastRadius: blastRadiusSummary(blastRadius),
    });
    return {
      answer: { key: await findMasterKey(tx, applicationId, after), blastRadius },
      afterCommit: async () => {
        await directory.renew({ keys: [keyId], objects: [before.handle] });
        erasure.schedule();
      },
    };
  };

/**
 * Destruction by the database that owns the key. A rule that refuses databases is checked in the
 * same transaction.
 */
export const destroyKey = (ports: DestroyPorts) => {
  const { store, usage } = ports;
  const destroy = destroyKeyIn(ports);
  return async (
    actor: Actor,
    tenantId: string,
    applicationId: string,
    keyId: string,
    by: DestroyedBy,
  ): Promise<Destroyed> => {
    // The blast radius that the record has includes the uses of the last seconds.
    await usage.flush(false);
    const { answer, afterCommit } = await store.write(async (tx) => {
      // What decides here is what the service wrote: the key's row says in which vault it is, the
      // vault's row has the rule.
      const key = await findMasterKey(tx, applicationId, await tx.keys.get(tenantId, keyId));
      if (key.integrity !== 'ok')
        throw new ServiceError('key-tampered', 'the stored object of the key was changed from outside', {
          hint: 'compare the database with a backup; dke verify names every such row',
        });
      const { dualControl } = await findVault(tx, tenantId, key.vaultId);
      if (dualControl?.databases === 'refused')
        throw new ServiceError(
          'forbidden',
          'dual control of the group: a database cannot destroy a master key directly',
          {
            hint: 'run dke tde key destroy; other people must then approve it',
            reason: 'dual-control',
          },
        );
      return destroy(tx, actor, tenantId, applicationId, keyId, by);
    });
    await afterCommit();
    return answer;
  };
};

const mostListed = 10;

/** Destruction by people, under the dual control of the group's vault. */
export const destroyMasterKey = (
  ports: DestroyPorts,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<MasterKeyOperations, 'destroy' | 'destroyNeeds'> => {
  const destroy = destroyKeyIn(ports);
  const governed = withApproval('master-key.destroy', {
    permission: 'master-keys:destroy',
    plan: async (
      from,
      tenantId,
      { applicationId, keyId }: { readonly applicationId: string; readonly keyId: string },
    ) => {
      const application = await findApplication(from, tenantId, applicationId);
      const key = await findMasterKey(from, applicationId, await from.keys.stored(tenantId, keyId));
      if (nextState(key.state, 'destroy') === null) throw new ServiceError('key-destroyed', 'the key is destroyed');
      const { state, currentVersion, vaultId } = key;
      const radius = await findBlastRadius(from, application, key, tenantId);
      const { appIds, hosts, instances, copies } = blastRadiusSummary(radius);
      const others = (await from.keys.otherCopies(key)).filter((other) => other.state !== 'destroyed');
      return {
        tenantId: key.tenantId,
        subject: { kind: 'key', id: keyId, name: key.name },
        // Where the row was changed from outside, it is not known whose rule applies: those of
        // every vault do.
        vaults: key.integrity === 'ok' ? [await findVault(from, tenantId, vaultId)] : await vaultsOf(from, tenantId),
        impact: { appIds, hosts },
        named: {
          application: { kind: 'application', id: applicationId, name: application.name },
          groupApplications: radius.groupApplications.map(({ id, name }) => ({ kind: 'application', id, name })),
        },
        // Processes of a database come and go while it runs, and backups are made every night.
        marks: {
          ...{ instances, copies, usableCopies: others.length },
          copyList: radius.copies.items.slice(0, mostListed).map(({ text }) => text),
          ...lastUse(await findKeyUse(from, key)),
        },
        least: ['usableCopies'],
        state: { state, currentVersion, vaultId, groupId: application.groupId },
      };
    },
    carryOut: (tx, actor, { applicationId, keyId }) =>
      destroy(tx, actor, actor.tenantId, applicationId, keyId, {}, actor.reach),
  });
  return {
    destroy: (actor, applicationId, keyId) => governed.run(actor, { applicationId, keyId }),
    destroyNeeds: async (actor, applicationId, keyId) => {
      await ports.usage.flush(false);
      return governed.plan(actor, { applicationId, keyId });
    },
  };
};
