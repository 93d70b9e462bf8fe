// Whether the database matches the checkpoint stored with the root key: compared at the start, and before each checkpoint.

import { type Checkpoint, parseCheckpoint, verifyLogNote } from '../../base/checkpoint.ts';
import { rootHash } from '../../base/merkle-tree.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, RowSetHead } from '../../ports/store.ts';
import { auditOrigin, nameLog, originSetting } from './audit-origin.ts';

/** JSON of when a backup was made, and how many audit records it has: set by the restore until an operator has confirmed it. */
export const restoredSetting = 'restored';

/** The result of comparing the database with the checkpoint stored with the root key. */
export type AuditFinding =
  | { readonly state: 'intact' }
  /** Records are missing: an older copy was put back, or the end was cut off. */
  | { readonly state: 'older'; readonly size: number; readonly expected: number }
  /** It lacks changes that were confirmed since: its log is damaged or was taken away, or an older copy was put back. */
  | { readonly state: 'incomplete'; readonly size: number; readonly expected: number }
  /** The records differ from those that were signed, or the checkpoint stored with the root key is of another log. */
  | { readonly state: 'changed'; readonly size: number }
  /** Policy rows were restored to an older version, removed or added. `older`: some of the restored rows, where they are known. */
  | { readonly state: 'rows-changed'; readonly size: number; readonly older: readonly string[] }
  /** A backup of the whole service was restored: what was changed since is missing, whatever it is. */
  | { readonly state: 'restored'; readonly size: number; readonly at: string }
  /** Changes that this node has already received are missing: the database returned to an earlier state while the service ran. */
  | { readonly state: 'lost-changes' };

type ComparePorts = Pick<Ports, 'store' | 'ring' | 'root' | 'clock'>;

export type Unsound = Exclude<AuditFinding, { readonly state: 'intact' }>;

/** The database does not match the checkpoint stored with the root key. */
export class ChangedDatabase extends Error {
  override readonly name = 'ChangedDatabase';
  readonly finding: Unsound;
  constructor(finding: Unsound) {
    super('the database does not match the checkpoint next to the root key');
    this.finding = finding;
  }
}

/** How many records there should be, where that is known. */
export const expectedOf = (finding: Unsound): number | null => ('expected' in finding ? finding.expected : null);
/** How many there are, where that matters. */
export const sizeOf = (finding: Unsound): number | null => ('size' in finding ? finding.size : null);

/** Whether these rows may follow those of a checkpoint. */
const continues = ({ rows }: Checkpoint, head: RowSetHead | undefined): boolean =>
  rows === undefined ||
  (head !== undefined && (head.version > rows.version || (head.version === rows.version && head.tag === rows.tag)));

/**
 * Throws ChangedDatabase when the stored tree does not continue the one that was signed last. Costs what a root costs: some dozen stored hashes, whatever
 * the size. That each record is the one of its hash is what a verification of the log shows.
 */
export const requireContinued = async (
  root: ComparePorts['root'],
  { audit, whole }: Pick<Repositories, 'audit' | 'whole'>,
  size: number,
): Promise<void> => {
  const note = root.anchor.read();
  if (note === undefined) return;
  const kept = parseCheckpoint(note);
  if (kept !== null && kept.size > size) throw new ChangedDatabase({ state: 'older', size, expected: kept.size });
  const found = await rootHash(audit.subtree, kept?.size ?? 0).catch((error: unknown) => {
    // Hashes of the tree are missing.
    if (error instanceof RangeError) return null;
    throw error;
  });
  if (kept === null || found === null || !found.equals(kept.root))
    throw new ChangedDatabase({ state: 'changed', size });
  if (!continues(kept, await whole.rowSet())) throw new ChangedDatabase({ state: 'rows-changed', size, older: [] });
};

/** At the start. Names the log at the first one. */
export const compareAtStart = async ({ store, root, ring, clock }: ComparePorts): Promise<AuditFinding> => {
  const isNew = (await store.read.settings.get(originSetting)) === undefined;
  const size = await store.read.audit.size();
  const note = root.anchor.read();
  const expected = store.committed?.records ?? 0;
  // A checkpoint next to a new database is of an earlier database.
  if (isNew && note === undefined) store.committed?.accept();
  if (isNew) await store.write((tx) => nameLog(tx, clock.now()));
  const name = await auditOrigin(store.read);
  const sound: AuditFinding =
    expected > size && !(isNew && note === undefined) ? { state: 'incomplete', size, expected } : { state: 'intact' };
  const rows = await store.rowSet.load();
  /** Rows have versions from now on. */
  const isFirst = rows.head === undefined && (note === undefined || parseCheckpoint(note)?.rows === undefined);
  if (isFirst && rows.rows > 0) await store.rowSet.adopt(0);
  const rowsChanged: AuditFinding = { state: 'rows-changed', size, older: [] };
  if (note === undefined) return rows.isSound || isFirst ? sound : rowsChanged;
  const anchored = verifyLogNote(note, name, ring.auditKeys());
  if (anchored === null) {
    // The log has taken another name since, or never had this one: an older copy, if its signature is of our key.
    const other = parseCheckpoint(note);
    const known = other !== null && verifyLogNote(note, other.origin, ring.auditKeys()) !== null;
    return known && other.size > size ? { state: 'older', size, expected: other.size } : { state: 'changed', size };
  }
  if (anchored.size > size) return { state: 'older', size, expected: anchored.size };
  const found = await rootHash(store.read.audit.subtree, anchored.size);
  if (!found.equals(anchored.root)) return { state: 'changed', size };
  if (sound.state !== 'intact' || isFirst) return sound;
  return rows.isSound && continues(anchored, rows.head) ? sound : rowsChanged;
};

/** Another node has taken the database as it is, and named the log, since this node kept its last checkpoint. */
export const isNamedAnew = async (
  { store, root }: Pick<ComparePorts, 'store' | 'root'>,
  nameAtStart: string | undefined,
): Promise<boolean> => {
  const note = root.anchor.read();
  const known = note === undefined ? nameAtStart : parseCheckpoint(note)?.origin;
  // Names are in the order of their time.
  return known !== undefined && known < (await auditOrigin(store.read));
};
