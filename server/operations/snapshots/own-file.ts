// Whether this service made the file of a snapshot. Its signature says only that it was one of the
// service's keys, and the holder of an old database has the former ones: so the audit log says it.
// The record of the creation has the file's digest, and is in the log that the present key has
// signed. Everything else is foreign: it needs a signer that dke.toml names, a second person, and
// an empty tenant.
//
// Files from before records had digests, and those that are newer than a restored database, have no
// such record: they count as own while the key that signed them is the present one.

import { parseVerifierKey, publicKeyOf, verifyLogNote } from '../../base/checkpoint.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { AuditEvent } from '../../domain/audit-event.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotClosing } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';
import { auditOrigin } from '../audit/audit-origin.ts';
import { decidingRecord, isUnderRoot } from '../shared/tree-of-log.ts';

/**
 * Whether a record is as the log has it: what the last checkpoint covers is under the root that it
 * signs, and what is younger under the root of the log as it is.
 */
const isInLog = async (read: Repositories, ring: Ports['ring'], event: AuditEvent): Promise<boolean> => {
  const latest = await read.audit.latestCheckpoint();
  if (latest === undefined || latest.size < event.sequence) return isUnderRoot(read.audit, event);
  const signed = verifyLogNote(latest.note, await auditOrigin(read), ring.auditKeys());
  return signed !== null && isUnderRoot(read.audit, event, signed);
};

export const isOwnFile = async (
  { store: { read }, ring }: Pick<Ports, 'store' | 'ring'>,
  { snapshotId, digest, signer }: Pick<SnapshotClosing, 'snapshotId' | 'digest' | 'signer'>,
): Promise<boolean> => {
  const made = await decidingRecord(read.audit, { kind: 'snapshot.created', subjectId: snapshotId, order: 'oldest' });
  if (made === null) return false;
  if (typeof made?.details.digest === 'string')
    return made.details.digest === digest && (await isInLog(read, ring, made));
  const verifier = parseVerifierKey(signer);
  return verifier !== null && publicKeyOf(verifier).equals(ring.auditPublicKey());
};

/**
 * Throws 'forbidden' unless this service made the file, or the configuration names the key that
 * signed it.
 */
export const requireTrusted = (isOwn: boolean, trustedSigners: readonly string[], signer: string): void => {
  const keyOf = (text: string): Buffer | undefined => {
    const verifier = parseVerifierKey(text);
    return verifier === null ? undefined : publicKeyOf(verifier);
  };
  const key = keyOf(signer);
  if (isOwn || (key !== undefined && trustedSigners.some((text) => keyOf(text)?.equals(key)))) return;
  throw new ServiceError('forbidden', 'this service does not trust the signer of the snapshot', {
    hint: 'add the verifier key of the signer to snapshots.trusted_signers in dke.toml',
  });
};
