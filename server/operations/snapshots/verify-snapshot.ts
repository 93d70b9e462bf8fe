// Checks whether a snapshot is what was signed; with its key, whether every key in it is the one
// that went in, and whether it can be restored: the whole restore is done into a tenant of its own,
// in a copy of the tables. So "valid" means restorable. The result is stored with the snapshot.

import { parseVerifierKey, publicKeyOf } from '../../base/checkpoint.ts';
import { newId } from '../../base/ids.ts';
import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Snapshot, Verification } from '../../domain/snapshot.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotClosing, TrustedSigners } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { createTenantIn, newTenant } from '../tenants/create-tenant.ts';
import { eraseUnits } from './erase-destroyed.ts';
import { findSnapshot } from './find-snapshot.ts';
import { rememberOpened } from './last-opening.ts';
import { restoreRows } from './restore-rows.ts';

type VerifyPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'archive' | 'clock' | 'exclusion' | 'log'>;

const fileFault = (fault: string): ServiceError =>
  new ServiceError('key-tampered', fault, {
    reason: 'snapshot-damaged',
    hint: 'replace the file with the right copy of this snapshot, or run dke snapshot delete',
  });

export const olderCopy = (): ServiceError => fileFault('it is an older copy, from before keys were erased');

/** The keys that sign, or signed, what this service makes. */
export const ownSigners = (ring: Ports['ring']): readonly Buffer[] =>
  ring.auditKeys().map(({ publicKey }) => publicKey);

/** The service's own keys, and that of the service from which the snapshot was imported. */
export const trustedFor = (
  ring: Ports['ring'],
  { signer, origin }: Pick<Snapshot, 'signer' | 'origin'>,
): TrustedSigners => {
  const other = origin === 'imported' && signer !== null ? parseVerifierKey(signer) : null;
  const own = ownSigners(ring);
  return other === null ? own : [...own, publicKeyOf(other)];
};

/**
 * What the file says of itself, after every destroyed key is erased from it. Those of a file that
 * was away are still in it, and those of an older copy that replaced the file, for example from a
 * backup of the folder, are in it again. How many were erased before is under the row's code: a
 * file of another service that has fewer of them is an older one, with keys that were destroyed
 * there. Not to be called within `exclusion`.
 */
export const inspectFile = async (
  ports: Pick<VerifyPorts, 'store' | 'ring' | 'archive' | 'clock' | 'exclusion' | 'log'>,
  actor: Actor,
  snapshot: Snapshot,
): Promise<SnapshotClosing> => {
  const { store, ring, archive, exclusion, log } = ports;
  const { id, tenantId, counts } = snapshot;
  const { closing, erased } = await archive.inspect(id, trustedFor(ring, snapshot));
  if (closing.snapshotId !== id) throw fileFault('it is the file of another snapshot');
  const total = await exclusion.run(() => eraseUnits(ports, actor, snapshot));
  const returned = (counts?.erased ?? 0) - erased.length;
  if (returned <= 0) return closing;
  // In a snapshot of another service, keys may be erased that are not known here.
  if (total < (counts?.erased ?? 0)) throw olderCopy();
  log.warn('the file of a snapshot was replaced by an older copy: destroyed keys were erased from it again', {
    snapshotId: id,
    keys: returned,
  });
  await store.write((tx) =>
    recordEvent(tx, 'snapshot.keys-erased', actor, about('snapshot', { id, tenantId }), { keys: returned }),
  );
  return closing;
};

/** Opens everything. Answers what does not fit, or null. */
export const openAll = async (
  { core, archive }: Pick<VerifyPorts, 'core' | 'archive'>,
  id: string,
  key: KeyRef,
  trusted: TrustedSigners,
  closing: SnapshotClosing,
): Promise<string | null> => {
  let lines = 0;
  let materials = 0;
  const rows: Record<string, number> = {};
  for await (const item of archive.items(id, key, trusted)) {
    lines += 1;
    if (lines % 500 === 0) await otherWork();
    if (item.kind === 'row') {
      rows[item.table] = (rows[item.table] ?? 0) + 1;
      continue;
    }
    materials += 1;
    if (item.key === null) continue;
    const check = archive.checkOf(item.key);
    core.release(item.key);
    if (check !== item.check) return `the key ${item.unitId}, version ${item.version}, does not match its check value`;
  }
  if (lines !== closing.lines || materials !== closing.materials) return 'the counts differ from the signed counts';
  const wrong = Object.keys({ ...rows, ...closing.rows }).find((table) => rows[table] !== closing.rows[table]);
  return wrong === undefined ? null : `the number of rows of ${wrong} differs from the signed number`;
};

const mostNamed = 5;

/**
 * Restores it into a new tenant, by the rules of a restore, in a copy of the tables that is not
 * kept. Answers why it fails, or null.
 */
const tryOut = async (
  ports: VerifyPorts,
  actor: Actor,
  { id, tenantId: fromTenantId, signer, origin }: Snapshot,
  key: KeyRef,
  { digest }: SnapshotClosing,
): Promise<string | null> => {
  const { store, archive, clock, exclusion } = ports;
  const ring = ports.ring.aside();
  const restoreAside = async (tx: Repositories): Promise<string | null> => {
    // No other tenant has this name.
    const aside = newTenant(`verification ${newId(clock.now())}`, clock.now());
    await createTenantIn({ ring }, tx, actor, aside);
    const items = archive.items(id, key, trustedFor(ports.ring, { signer, origin }), digest);
    const target = { tenantId: aside.id, newTenant: true, fromTenantId };
    const { withoutValue } = await restoreRows({ ...ports, ring }, tx, items, target);
    const damaged = withoutValue.slice(0, mostNamed).map(({ label }) => label);
    return damaged.length === 0 ? null : `values of objects do not open: ${damaged.join(', ')}`;
  };
  try {
    return await exclusion.run(() => store.tryOut(restoreAside));
  } catch (error) {
    if (error instanceof ServiceError && ['conflict', 'key-tampered', 'unsupported'].includes(error.code))
      return `it cannot be restored: ${error.message}`;
    throw error;
  } finally {
    ring.close();
  }
};

export const verifySnapshot =
  (ports: VerifyPorts) =>
  /** `key`: opened too; it is released here. */
  async (actor: Actor, id: string, key: KeyRef | null): Promise<Snapshot> => {
    const { store, core, ring, clock } = ports;
    try {
      const snapshot = await findSnapshot(store.read, id, ['available', 'missing']);
      let finding: string | null = null;
      try {
        const closing = await inspectFile(ports, actor, snapshot);
        if (key !== null)
          finding =
            (await openAll(ports, id, key, trustedFor(ring, snapshot), closing)) ??
            (await tryOut(ports, actor, snapshot, key, closing));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        finding = error.message;
      }
      const at = clock.now();
      const verification: Verification = {
        at,
        depth: key === null ? 'sealed' : 'opened',
        valid: finding === null,
        finding,
      };
      return await store.write(async (tx) => {
        const before = await findSnapshot(tx, id);
        const after: Snapshot = {
          ...before,
          // A snapshot that was deleted, in the meantime or before its file was missing, stays
          // deleted.
          state:
            finding !== null || before.state !== 'missing'
              ? before.state
              : before.deletedAt === null
                ? 'available'
                : 'deleted',
          verification,
          verifiedAt: finding === null ? at : before.verifiedAt,
        };
        await tx.snapshots.update(after);
        if (finding === null && key !== null) await rememberOpened(tx, before.tenantId, at);
        await recordEvent(tx, 'snapshot.verified', actor, about('snapshot', before), {
          depth: verification.depth,
          valid: verification.valid,
          finding,
        });
        return after;
      });
    } finally {
      if (key !== null) core.release(key);
    }
  };
