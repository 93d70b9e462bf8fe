// The root key as operators see it, and its rotation on demand. A rotation that was asked for is a
// setting in the store, so that it is done though the service ends in between; the erasure run does
// it.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { rotationSetting } from '../../domain/changes.ts';
import type { Ports } from '../../ports/ports.ts';
import { newestBackup } from '../copies/take-receipts.ts';
import { releaseCopy } from './await-copies.ts';
import type { RootOperations } from './root-operations.ts';

export const manageRoot = ({
  store,
  ring,
  root,
  erasure,
}: Pick<Ports, 'store' | 'ring' | 'root' | 'erasure'>): RootOperations => {
  const read = async (): ReturnType<RootOperations['get']> => {
    const asked = await store.read.decisions.get(rotationSetting);
    const { blockers } = await erasure.state();
    const newest = await newestBackup(store.read, 'root-backup');
    return {
      epoch: root.current.epoch,
      previousEpoch: root.previous?.epoch ?? null,
      rotating: asked !== undefined || root.previous !== undefined,
      backup: newest === null ? null : { epoch: newest.rootEpoch ?? 0, at: newest.at },
      waitsFor: blockers === null ? [] : [...blockers.nodes.map((name) => `node ${name}`), ...blockers.standbys],
      providers: root.ways,
      ...root.erasure,
    };
  };
  return {
    get: read,
    rotate: async (actor, tenantId) => {
      await store.write(async (tx) => {
        const tenant = tenantId === undefined ? undefined : await tx.tenants.stored(tenantId);
        if (tenantId !== undefined && tenant === undefined) throw new ServiceError('not-found', 'tenant not found');
        const before = await tx.decisions.get(rotationSetting);
        // Every tenant's key is new after a rotation of the root.
        if (before === 'root') return;
        if (before !== undefined && tenantId !== undefined)
          throw new ServiceError('conflict', 'a key of a tenant is being rotated', {
            hint: 'wait until dke root show reports no rotation',
          });
        await tx.decisions.set(
          rotationSetting,
          tenantId === undefined ? 'root' : `tenant ${tenantId} ${ring.epochs().get(tenantId) ?? 0}`,
        );
        await tx.audit.append({
          kind: tenantId === undefined ? 'root.rotation-requested' : 'tenant.key-rotation-requested',
          actor,
          tenantId: tenantId ?? serviceTenantId,
          subject: tenantId === undefined ? { kind: 'service', id: 'service' } : { kind: 'tenant', id: tenantId },
          details:
            tenantId === undefined ? { rootEpoch: root.current.epoch } : { epoch: ring.epochs().get(tenantId) ?? 0 },
        });
      });
      erasure.schedule();
      return read();
    },
    releaseCopy: async (actor, name) => {
      await store.write((tx) => releaseCopy(tx, actor, name));
      erasure.schedule();
      return read();
    },
  };
};
