// The root of the audit log's tree as the database has it, to be compared with what is known of it
// elsewhere, and the way to it from a single record. A record that decides something is read here:
// test/house/deciding-records.test.ts lists every other reader, and why it decides nothing.

import { inclusionProof, leafHash, rootHash, rootOfInclusion } from '../../base/merkle-tree.ts';
import { type AuditEvent, type AuditKind, auditEntry } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { each } from './paging.ts';

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
 * Whether the row of a record is what its own hash is of. That the hash is in the log, it does not
 * say.
 */
const hasItsHash = async (audit: Repositories['audit'], event: AuditEvent): Promise<boolean> => {
  const stored = await whereComplete(audit.subtree(0, event.sequence - 1));
  return stored?.equals(leafHash(Buffer.from(auditEntry(event), 'utf8'))) === true;
};

/**
 * Whether a record is the one under the root of the log, which each start compares with its signed
 * checkpoint: its row alone can be changed from outside.
 *
 * `signed`: the size and the root of a checkpoint, in the place of those of the log now.
 */
export const isUnderRoot = async (
  audit: Repositories['audit'],
  event: AuditEvent,
  signed?: { readonly size: number; readonly root: Buffer },
): Promise<boolean> => {
  const size = signed?.size ?? (await audit.size());
  const index = event.sequence - 1;
  const root = signed?.root ?? (await rootOf(audit, size));
  const path = index < size ? await whereComplete(inclusionProof(audit.subtree, index, size)) : null;
  if (root === null || path === null) return false;
  return rootOfInclusion(leafHash(Buffer.from(auditEntry(event), 'utf8')), index, size, path).equals(root);
};

interface Wanted {
  readonly kind: AuditKind;
  readonly subjectId?: string;
  readonly order: 'newest' | 'oldest';
}
/**
 * The first record in this order that decides something. Null: its row was changed from outside.
 */
export const decidingRecord = async (
  audit: Repositories['audit'],
  wanted: Wanted,
): Promise<AuditEvent | null | undefined> => {
  const [event] = await audit.list(everyTenant, wanted, { limit: 1 });
  return event === undefined || (await isUnderRoot(audit, event)) ? event : null;
};

/**
 * All records of a kind that decide something, oldest first; not `proven`: changed from outside.
 */
export async function* decidingRecords(
  audit: Repositories['audit'],
  kind: AuditKind,
): AsyncGenerator<{ readonly event: AuditEvent; readonly proven: boolean }> {
  const events = each(
    (window) => audit.list(everyTenant, { kind, order: 'oldest' }, window),
    ({ sequence }) => String(sequence),
  );
  for await (const event of events) yield { event, proven: await isUnderRoot(audit, event) };
}

/**
 * Whether the log has a record of this kind. Undefined: a row was changed or removed from outside,
 * so that it may have had one. Reads all records where there is none.
 */
export const hasRecord = async (audit: Repositories['audit'], kind: AuditKind): Promise<boolean | undefined> => {
  const found = await decidingRecord(audit, { kind, order: 'oldest' });
  if (found !== undefined) return found === null ? undefined : true;
  const size = await audit.size();
  const all = each(
    (window) => audit.list(everyTenant, { order: 'oldest' }, window),
    ({ sequence }) => String(sequence),
  );
  let read = 0;
  for await (const event of all) {
    read += 1;
    if (event.sequence !== read || !(await hasItsHash(audit, event))) return undefined;
  }
  return read < size ? undefined : false;
};
