// Whether the database matches the checkpoint stored with the root key: compared at the start, and
// before each checkpoint. What others may commit or sign in the meantime is never part of a
// comparison: the value that may not be exceeded is read first, then one state of the database.

import { type Checkpoint, parseCheckpoint, verifyLogNote } from '../../base/checkpoint.ts';
import { rootHash } from '../../base/merkle-tree.ts';
import type { AuditFinding, Unsound } from '../../domain/audit-finding.ts';
import type { DecisionName } from '../../domain/decisions.ts';
import { type Difference, type Differences, differencesOf } from '../../domain/difference.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, RowSetHead } from '../../ports/store.ts';
import { adoptCopies, adoptErasures, adoptedErasures, adoptedSetting } from '../copies/adopt-copies.ts';
import { foldedNames, foldNames } from '../people/fold-names.ts';
import { rootHashOf, rootOf } from '../shared/tree-of-log.ts';
import { auditOrigin, nameLog, originSetting } from './audit-origin.ts';

/**
 * JSON of when a backup was made, and how many audit records it has: set by the restore until an
 * operator has confirmed it.
 */
export const restoredSetting = 'restored';

/** `setting`: of `restoredSetting`. */
export const restoredFinding = (setting: string, size: number): AuditFinding => {
  const { at } = JSON.parse(setting) as { readonly at: string };
  return {
    ...{ state: 'restored', size, at },
    differences: [
      {
        ...{ what: 'origin of the database', found: `a backup of ${at}`, foundIn: 'its settings' },
        ...{ expected: 'no restored backup', expectedIn: 'a service that runs' },
      },
    ],
  };
};

type ComparePorts = Pick<Ports, 'store' | 'ring' | 'root' | 'clock'>;

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

const versionOf = (head: RowSetHead | undefined): string =>
  head === undefined ? 'none' : `version ${head.version}, code ${head.tag}`;

/**
 * Compares the policy rows with the checkpoint. Empty: their head is the same, or a later version.
 */
const rowsBehind = ({ rows }: Checkpoint, head: RowSetHead | undefined, place: string): readonly Difference[] =>
  rows === undefined ||
  (head !== undefined && (head.version > rows.version || (head.version === rows.version && head.tag === rows.tag)))
    ? []
    : [
        {
          ...{ what: 'head of the policy rows', found: versionOf(head), foundIn: 'its table row_set' },
          ...{ expected: `${versionOf(rows)}, or a later version`, expectedIn: place },
        },
      ];

const recordsIn = (size: number, expected: number, expectedIn: string): Differences => [
  {
    what: 'number of audit records',
    found: String(size),
    foundIn: 'its audit log',
    expected: String(expected),
    expectedIn,
  },
];
const otherTree = (
  kept: Pick<Checkpoint, 'size' | 'root'> | null,
  found: Buffer | null,
  place: string,
): Differences => [
  {
    what: kept === null ? 'checkpoint of the audit log' : rootHashOf(kept.size),
    found: found === null ? 'not complete' : found.toString('hex'),
    foundIn: 'its audit log',
    expected: kept === null ? 'one that can be read' : kept.root.toString('hex'),
    expectedIn: place,
  },
];
/**
 * The checkpoint that is kept next to the root key, to be compared with a state of the database
 * that begins afterwards.
 */
export interface KeptNote {
  readonly note: string | undefined;
  readonly place: string;
}
export const readKept = ({ anchor }: ComparePorts['root']): KeptNote => ({
  note: anchor.read(),
  place: anchor.place(),
});

/**
 * Throws ChangedDatabase when the stored tree does not continue the one that was signed last.
 * `kept` is read first: a checkpoint that is signed in the meantime is of a later state than the
 * one that is read here. Costs what a root costs: some dozen stored hashes, whatever the size. That
 * each record is the one of its hash is what a verification of the log shows.
 */
export const requireContinued = async (
  { note, place }: KeptNote,
  { audit, whole }: Pick<Repositories, 'audit' | 'whole'>,
): Promise<void> => {
  if (note === undefined) return;
  const size = await audit.size();
  const kept = parseCheckpoint(note);
  if (kept !== null && kept.size > size)
    throw new ChangedDatabase({
      ...{ state: 'older', size, expected: kept.size, differences: recordsIn(size, kept.size, place) },
    });
  const found = await rootOf(audit, kept?.size ?? 0);
  if (kept === null || found === null || !found.equals(kept.root))
    throw new ChangedDatabase({ state: 'changed', size, differences: otherTree(kept, found, place) });
  const differences = differencesOf(rowsBehind(kept, await whole.rowSet(), place));
  if (differences !== undefined) throw new ChangedDatabase({ state: 'rows-changed', size, older: [], differences });
};

/**
 * The log has taken another name since, or never had this one: an older copy, if its signature is
 * of our key.
 */
const ofOtherName = (
  { note, place }: { readonly note: string; readonly place: string },
  {
    name,
    size,
    keys,
  }: { readonly name: string; readonly size: number; readonly keys: Parameters<typeof verifyLogNote>[2] },
): Unsound => {
  const other = parseCheckpoint(note);
  const isKnown = other !== null && verifyLogNote(note, other.origin, keys) !== null;
  if (isKnown && other.size > size)
    return { state: 'older', size, expected: other.size, differences: recordsIn(size, other.size, place) };
  const signed = isKnown ? other.origin : `${other?.origin ?? 'none'}, not signed by this service`;
  return {
    ...{ state: 'changed', size },
    differences: [
      { what: 'name of the audit log', found: name, foundIn: 'its settings', expected: signed, expectedIn: place },
    ],
  };
};

/**
 * Before decisions are read. Values of a version that had no rows for them count only where the
 * policy rows are whole without such rows: as long as there are any, their sum has them, and a
 * database without them is one from which they were removed. The sum that is loaded later shows
 * that.
 */
export const adoptDecisions = async ({ store, root }: Pick<ComparePorts, 'store' | 'root'>): Promise<void> => {
  const adopted = await store.read.decisions.adopted();
  if (adopted === 'all') return;
  const { note, place } = readKept(root);
  const kept = note === undefined ? null : parseCheckpoint(note);
  const { head, differences } = await store.rowSet.load();
  const behind = kept === null ? [] : rowsBehind(kept, head, place);
  const isUpgrade = adopted === 'none' && differences.length + behind.length === 0;
  await store.write((tx) => tx.decisions.adopt(isUpgrade));
};

/** At the start. Names the log at the first one. */
const compare = async ({ store, root, ring, clock }: ComparePorts): Promise<AuditFinding> => {
  await adoptDecisions({ store, root });
  const lacks = async (name: DecisionName): Promise<boolean> => (await store.read.decisions.get(name)) === undefined;
  const [copies, erasures] = [await lacks(adoptedSetting), await lacks(adoptedErasures)];
  const names = (await store.read.settings.get(foldedNames.setting)) !== foldedNames.version;
  if (copies || erasures || names)
    await store.write(async (tx) => {
      if (copies) await adoptCopies(tx, clock.now());
      if (erasures) await adoptErasures(tx);
      if (names) await foldNames(tx);
    });
  const isNew = (await store.read.decisions.get(originSetting)) === undefined;
  const { note, place } = readKept(root);
  const { committed } = store;
  // A checkpoint next to a new database is of an earlier database.
  if (isNew && note === undefined) committed?.accept();
  if (isNew) await store.write((tx) => nameLog(tx, clock.now()));
  const size = await store.read.audit.size();
  const name = await auditOrigin(store.read);
  const confirmed = isNew && note === undefined ? undefined : committed?.found;
  const written = committed?.place() ?? '';
  const tree = confirmed?.root === undefined ? undefined : await rootOf(store.read.audit, confirmed.records);
  const sound: AuditFinding =
    confirmed !== undefined && confirmed.records > size
      ? {
          state: 'incomplete',
          size,
          expected: confirmed.records,
          differences: recordsIn(size, confirmed.records, written),
        }
      : confirmed?.root !== undefined && tree?.equals(confirmed.root) !== true
        ? {
            state: 'changed',
            size,
            differences: otherTree({ size: confirmed.records, root: confirmed.root }, tree ?? null, written),
          }
        : { state: 'intact' };
  const rows = await store.rowSet.load();
  /** Rows have versions from now on. */
  const isFirst = rows.head === undefined && (note === undefined || parseCheckpoint(note)?.rows === undefined);
  if (isFirst && rows.rows > 0) await store.rowSet.adopt(0);
  const changedRows = (found: readonly Difference[]): AuditFinding => {
    const differences = differencesOf(found);
    return differences === undefined ? sound : { state: 'rows-changed', size, older: [], differences };
  };
  const found = [...rows.schema, ...rows.differences];
  if (note === undefined) return isFirst ? sound : changedRows(found);
  const anchored = verifyLogNote(note, name, ring.auditKeys());
  if (anchored === null) return ofOtherName({ note, place }, { name, size, keys: ring.auditKeys() });
  if (anchored.size > size)
    return { state: 'older', size, expected: anchored.size, differences: recordsIn(size, anchored.size, place) };
  const signed = await rootHash(store.read.audit.subtree, anchored.size);
  if (!signed.equals(anchored.root)) return { state: 'changed', size, differences: otherTree(anchored, signed, place) };
  if (sound.state !== 'intact' || isFirst) return sound;
  return changedRows([...found, ...rowsBehind(anchored, rows.head, place)]);
};

/** At the start: a database that is intact has its sum under the keys of today from then on. */
export const compareAtStart = async (ports: ComparePorts): Promise<AuditFinding> => {
  const found = await compare(ports);
  if (found.state === 'intact') await ports.store.rowSet.convert();
  return found;
};

/**
 * Another node has taken the database as it is, and named the log, since this node kept its last
 * checkpoint.
 */
export const isNamedAnew = async (
  { store, root }: Pick<ComparePorts, 'store' | 'root'>,
  nameAtStart: string | undefined,
): Promise<boolean> => {
  const note = root.anchor.read();
  const known = note === undefined ? nameAtStart : parseCheckpoint(note)?.origin;
  // Names are in the order of their time.
  return known !== undefined && known < (await auditOrigin(store.read));
};
