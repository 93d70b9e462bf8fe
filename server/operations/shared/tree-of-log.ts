// The root of the audit log's tree as the database has it, to be compared with what is known of it
// elsewhere, and the way to it from a single record.

import { inclusionProof, leafHash, rootHash, rootOfInclusion } from '../../base/merkle-tree.ts';
import { type AuditEvent, auditEntry } from '../../domain/audit-event.ts';
import type { Repositories } from '../../ports/store.ts';

const whereComplete = <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (error instanceof RangeError) return null;
    throw error;
  });

/** Null: hashes of the tree are missing. */
export const rootOf = ({ subtree }: Repositories['audit'], size: number): Promise<Buffer | null> =>
  whereComplete(rootHash(subtree, size));

/** What a finding calls it. */
export const rootHashOf = (size: number): string => `root hash of the first ${size} audit records`;

/**
 * Whether a record is the one under the root of the log, which each start compares with its signed
 * checkpoint. A record that decides something is asked: its row alone can be changed from outside.
 */
export const isUnderRoot = async (audit: Repositories['audit'], event: AuditEvent): Promise<boolean> => {
  const size = await audit.size();
  const index = event.sequence - 1;
  const root = await rootOf(audit, size);
  const path = index < size ? await whereComplete(inclusionProof(audit.subtree, index, size)) : null;
  if (root === null || path === null) return false;
  return rootOfInclusion(leafHash(Buffer.from(auditEntry(event), 'utf8')), index, size, path).equals(root);
};
