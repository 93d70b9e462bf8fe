// Takes in the file of a snapshot. What is destroyed here is erased from it at once.

import { parseVerifierKey, publicKeyOf } from '../../base/checkpoint.ts';
import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Ports } from '../../ports/ports.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { eraseUnits } from './erase-destroyed.ts';
import { findSnapshot } from './find-snapshot.ts';
import { isOwnFile, requireTrusted } from './own-file.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';
import { olderCopy, ownSigners } from './verify-snapshot.ts';

type ImportPorts = Pick<Ports, 'store' | 'ring' | 'archive' | 'exclusion' | 'clock' | 'log'>;

/** Public keys of those that may have signed the file. */
const signersOf = (
  ring: ImportPorts['ring'],
  trustedSigners: readonly string[],
  signer: string | undefined,
): readonly Buffer[] => {
  if (signer === undefined) return ownSigners(ring);
  const given = parseVerifierKey(signer);
  if (given === null)
    throw new ServiceError('validation', 'signer is not a verifier key', {
      hint: 'use the verifierKey (NAME+ID+KEY) that dke audit log shows on the service that created the snapshot',
    });
  // A signer that is not trusted is refused before the file is read.
  const own = ownSigners(ring);
  requireTrusted(
    own.some((key) => key.equals(publicKeyOf(given))),
    trustedSigners,
    signer,
  );
  return [...own, publicKeyOf(given)];
};

type Inspected = Awaited<ReturnType<ImportPorts['archive']['inspect']>>;

/**
 * Missing until what is destroyed here is erased from the file: should the service end before that,
 * nothing else is done with the file.
 */
const importedOf = (
  { preface, closing, size, erased }: Inspected,
  before: Snapshot | undefined,
  at: number,
): Snapshot => {
  const { rows, units, materials, omitted } = closing;
  return {
    id: preface.snapshotId,
    tenantId: preface.tenantId,
    origin: 'imported',
    state: 'missing',
    createdAt: Date.parse(preface.at),
    auditSize: before?.auditSize ?? 0,
    size,
    // Keys that were erased from it once are not in it again.
    counts: { rows, units, materials, omitted, erased: Math.max(erased.length, before?.counts?.erased ?? 0) },
    recoveryKeyIds: preface.recipients.map((each) => each.recoveryKeyId),
    signer: closing.signer,
    verification: { at, depth: 'sealed', valid: true, finding: null },
    verifiedAt: at,
    deletedAt: null,
    purgedAt: null,
    failure: null,
    integrity: 'ok',
  };
};

/** `before`: what was known of this snapshot. */
const recordImported = (
  { store }: ImportPorts,
  actor: Actor,
  imported: Snapshot,
  before: Snapshot | undefined,
  { closing, erased }: Inspected,
): Promise<void> =>
  store.write(async (tx) => {
    const now = await tx.snapshots.get(imported.id);
    if (now?.state !== before?.state)
      throw new ServiceError('conflict', 'the snapshot was changed in the meantime', { hint: 'import it again' });
    if (now === undefined) await tx.snapshots.insert(imported);
    else await tx.snapshots.update(imported);
    await recordEvent(tx, 'snapshot.imported', actor, about('snapshot', imported), {
      signer: closing.signer,
      units: closing.units,
      erased: erased.length,
    });
  });

/**
 * `signer`: the verifier key of the service that made it, when that is not this one: one of
 * `trustedSigners`.
 */
export const importSnapshot =
  (ports: ImportPorts, { trustedSigners }: Pick<SnapshotSettings, 'trustedSigners'>) =>
  async (actor: Actor, body: AsyncIterable<Uint8Array>, signer: string | undefined): Promise<Snapshot> => {
    const { store, ring, archive, exclusion, clock } = ports;
    const signers = signersOf(ring, trustedSigners, signer);
    const arrived = newId(clock.now());
    return exclusion.run(async () => {
      await archive.receive(arrived, body);
      try {
        const inspected = await archive.inspect(arrived, signers);
        requireTrusted(await isOwnFile(ports, inspected.closing), trustedSigners, inspected.closing.signer);
        const id = inspected.preface.snapshotId;
        const before = await store.read.snapshots.get(id);
        if (
          before !== undefined &&
          (before.state === 'available' || before.state === 'deleted') &&
          (await archive.has(before.id))
        )
          throw new ServiceError('conflict', `this snapshot is already here, and it is ${before.state}`);
        const imported = importedOf(inspected, before, clock.now());
        // Known before its file is there: keys that are destroyed here are never left in a file
        // that no record names.
        await recordImported(ports, actor, imported, before, inspected);
        await archive.rename(arrived, id);
        if ((await eraseUnits(ports, actor, imported)) < (imported.counts?.erased ?? 0)) {
          await archive.remove(id);
          throw olderCopy();
        }
        return await store.write(async (tx) => {
          const erased = await findSnapshot(tx, id, ['missing', 'available']);
          const held: Snapshot = { ...erased, state: 'available' };
          await tx.snapshots.update(held);
          return held;
        });
      } catch (error) {
        await archive.remove(arrived);
        throw error;
      }
    });
  };
