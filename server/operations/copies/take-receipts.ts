// Backups of the service and of the root key are made by commands on the hosts (`dke backup
// create`, `dke root backup`). They leave receipts; each node brings its own into the store. A
// backup that has begun counts from then on: what it holds is not known before it ends.

import { newId } from '../../base/ids.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, serviceActor } from '../../domain/actor.ts';
import type { BackupReceipt } from '../../domain/backup-receipt.ts';
import { newOutsideCopy, type OutsideCopy } from '../../domain/copies.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';
import { about, aboutService, recordEvent } from '../shared/record-event.ts';

type Kind = 'service-backup' | 'root-backup';
const everyMs = 10_000;
/** `stateUntil` of a backup that has not ended: it may contain any state from its start on. */
const open = Number.MAX_SAFE_INTEGER;

const copyOf = (kind: Kind, receipt: BackupReceipt): OutsideCopy => {
  const { id, at, until, records, rootEpoch, oldestRootEpoch, state } = receipt;
  return newOutsideCopy({
    ...{ id: id ?? newId(at), kind, at, stateFrom: at, stateSize: records, rootEpoch },
    stateUntil: state === 'begun' ? open : (until ?? at),
    // Earlier versions named the newest root key only.
    oldestRootEpoch: oldestRootEpoch ?? (rootEpoch === null ? null : 0),
  });
};

const recordMade = (tx: Repositories, actor: Actor, kind: Kind, { id, at, bytes, rootEpoch, digest }: BackupReceipt) =>
  kind === 'service-backup'
    ? recordEvent(tx, 'service.backed-up', actor, aboutService(), {
        ...{ backupId: id, at: toRfc3339(at), size: bytes },
        ...(digest === null ? {} : { digest }),
      })
    : recordEvent(tx, 'root.backed-up', actor, aboutService(), { rootEpoch, at: toRfc3339(at) });

const findKnown = async (
  tx: Pick<Repositories, 'outsideCopies'>,
  kind: Kind,
  { id, at, rootEpoch }: BackupReceipt,
): Promise<OutsideCopy | undefined> => {
  if (id !== null) return tx.outsideCopies.get(id);
  for await (const copy of each((window) => tx.outsideCopies.list({ kind }, window), byId))
    if (copy.at === at && copy.rootEpoch === rootEpoch) return copy;
  return undefined;
};

const take = async (tx: Repositories, actor: Actor, kind: Kind, receipt: BackupReceipt, now: number): Promise<void> => {
  const known = await findKnown(tx, kind, receipt);
  if (known === undefined) {
    if (receipt.state === 'failed') return;
    await tx.outsideCopies.insert(copyOf(kind, receipt));
    if (receipt.state === 'made') await recordMade(tx, actor, kind, receipt);
    return;
  }
  const isOpen = known.stateUntil === open && known.destroyedAt === null && known.integrity === 'ok';
  if (!isOpen || known.kind !== kind || receipt.state === 'begun') return;
  if (receipt.state === 'made') {
    await tx.outsideCopies.update(copyOf(kind, receipt));
    await recordMade(tx, actor, kind, receipt);
    return;
  }
  // The command has removed what it had written.
  await tx.outsideCopies.update({ ...known, destroyedAt: now });
  await recordEvent(tx, 'copy.destroyed', actor, about('copy', known), {
    copyKind: kind,
    at: toRfc3339(known.at),
    reason: 'it was not completed',
  });
};

export interface CopyReceipts {
  /** `now`: also when this was done a moment ago. */
  run(now?: 'now'): Promise<void>;
}

export const createCopyReceipts = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  receipts: { readonly [K in Kind]: () => readonly BackupReceipt[] },
): CopyReceipts => {
  let lookedAt = Number.NEGATIVE_INFINITY;
  const taken = new Set<string>();
  return {
    run: async (when) => {
      if (when === undefined && clock.monotonic() - lookedAt < everyMs) return;
      lookedAt = clock.monotonic();
      for (const kind of ['service-backup', 'root-backup'] as const)
        for (const receipt of receipts[kind]()) {
          const mark = `${kind} ${receipt.id ?? receipt.at} ${receipt.state}`;
          if (taken.has(mark)) continue;
          await store.write((tx) => take(tx, serviceActor(newId(clock.now())), kind, receipt, clock.now()));
          taken.add(mark);
        }
    },
  };
};

/** The newest of those that are complete and not destroyed. */
export const newestBackup = async (
  from: Pick<Repositories, 'outsideCopies'>,
  kind: Kind,
): Promise<OutsideCopy | null> => {
  let newest: OutsideCopy | null = null;
  const rank = ({ rootEpoch, at }: OutsideCopy): number => (kind === 'root-backup' ? (rootEpoch ?? 0) * 1e14 : 0) + at;
  for await (const copy of each((window) => from.outsideCopies.list({ kind, left: true }, window), byId))
    if (copy.stateUntil !== open && (newest === null || rank(copy) > rank(newest))) newest = copy;
  return newest;
};
