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
    receipts,
    kept,
    isNewer,
    record,
  }: {
    readonly setting: string;
    /** The oldest first. */
    readonly receipts: () => readonly T[];
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
      const found = receipts();
      const newIn = async (from: Pick<Repositories, 'settings'>): Promise<readonly T[]> => {
        const known = await kept(from);
        return found.filter((each) => known === null || isNewer(each, known));
      };
      if (found.length === 0 || (await newIn(store.read)).length === 0) return;
      await store.write(async (tx) => {
        for (const each of await newIn(tx)) {
          await tx.settings.set(setting, JSON.stringify(each));
          await tx.audit.append({
            ...record(each),
            actor: serviceActor(newId(clock.now())),
            tenantId: serviceTenantId,
            subject: { kind: 'service', id: 'service' },
          });
        }
      });
    },
  };
};
