// Destruction: the marker, both copies overwritten, the audit record, in one transaction; terminal. From the commit on
// every use fails. `unrecoverableAt` follows with the erasure turn. No undelete exists.

import { toRfc3339 } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import type { Actor } from '../domain/actor.ts';
import type { Key } from '../domain/key.ts';
import { nextState } from '../domain/lifecycle.ts';
import type { BlastRadius, MasterKey } from '../domain/tde.ts';
import type { Ports } from '../ports/ports.ts';
import { blastRadiusSummary, findBlastRadius } from './blast-radius.ts';
import { findApplication } from './find.ts';
import type { MasterKeyOperations } from './index.ts';
import { findMasterKey } from './master-key-view.ts';

/** Who asked, beyond the actor: the instance, when a database did it. */
export interface DestroyedBy {
  readonly appId?: string;
  readonly host?: string;
  readonly process?: string;
}

type DestroyPorts = Pick<Ports, 'store' | 'directory' | 'clock' | 'erasure' | 'usage'>;

export const destroyKey =
  ({ store, directory, clock, erasure, usage }: DestroyPorts) =>
  async (
    actor: Actor,
    tenantId: string,
    applicationId: string,
    keyId: string,
    by: DestroyedBy,
  ): Promise<{ readonly key: MasterKey; readonly blastRadius: BlastRadius }> => {
    // The blast radius that the record bears includes the uses of the last seconds.
    await usage.flush(false);
    const answer = await store.write(async (tx) => {
      const application = await findApplication(tx, tenantId, applicationId);
      const before = await findMasterKey(tx, applicationId, await tx.keys.get(tenantId, keyId));
      if (nextState(before.state, 'destroy') === null) throw new ServiceError('key-destroyed', 'the key is destroyed');
      const radius = await findBlastRadius(tx, application, keyId);
      const destroyedAt = clock.now();
      const key = await tx.keys.get(tenantId, keyId);
      if (key === undefined) throw new ServiceError('key-not-found', 'no such master key');
      // A tampered row is written anew here, with its destruction: nothing it says counts any more.
      const after: Key = { ...key, state: 'destroyed', destroyedAt, reimportedAt: null, integrity: 'ok' };
      await tx.keys.update(after);
      for (const version of await tx.keys.versions(keyId)) {
        await tx.records.wipe(keyId, version.version, 'vault-copy');
        await tx.records.wipe(keyId, version.version, 'sealed-copy');
      }
      await tx.objects.destroy(before.handle, destroyedAt);
      await tx.audit.append({
        kind: 'key.destroyed',
        actor,
        tenantId: key.tenantId,
        subject: { kind: 'key', id: keyId },
        details: {
          name: key.name,
          kind: key.kind,
          label: before.label,
          applicationId,
          ...by,
          destroyedAt: toRfc3339(destroyedAt),
          blastRadius: blastRadiusSummary(radius),
        },
      });
      return { handle: before.handle, blastRadius: radius, key: await findMasterKey(tx, applicationId, after) };
    });
    await directory.renew({ keys: [keyId], objects: [answer.handle] });
    erasure.schedule();
    return { key: answer.key, blastRadius: answer.blastRadius };
  };

export const destroyMasterKey = (ports: DestroyPorts): MasterKeyOperations['destroy'] => {
  const destroy = destroyKey(ports);
  return (actor, applicationId, keyId) => destroy(actor, actor.tenantId, applicationId, keyId, {});
};
