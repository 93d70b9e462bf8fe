// Receipts that commands on the host leave in addition to the data of the service: each new one goes into the store, with an audit record.

import { newId, serviceTenantId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Ports } from '../../ports/ports.ts';
import type { NewAuditEvent, Repositories } from '../../ports/store.ts';

const everyMs = 10_000;

export const createReceipts = <T extends object>(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  {
    setting,
    receipt,
    kept,
    isNewer,
    record,
  }: {
    readonly setting: string;
    readonly receipt: () => T | undefined;
    readonly kept: (from: Pick<Repositories, 'settings'>) => Promise<T | null>;
    readonly isNewer: (one: T, other: T) => boolean;
    readonly record: (receipt: T) => Pick<NewAuditEvent, 'kind' | 'details'>;
  },
) => {
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    run: async (): Promise<void> => {
      if (clock.monotonic() - lookedAt < everyMs) return;
      lookedAt = clock.monotonic();
      const found = receipt();
      if (found === undefined) return;
      const isNew = (known: T | null): boolean => known === null || isNewer(found, known);
      if (!isNew(await kept(store.read))) return;
      await store.write(async (tx) => {
        if (!isNew(await kept(tx))) return;
        await tx.settings.set(setting, JSON.stringify(found));
        await tx.audit.append({
          ...record(found),
          actor: serviceActor(newId(clock.now())),
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'service' },
        });
      });
    },
  };
};
