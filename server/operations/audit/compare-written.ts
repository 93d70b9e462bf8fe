// Before a checkpoint is signed, or kept next to the root key: the records that this process has written since the last one must be in the log as it
// wrote them, and there must be no others. A writer of the database has no time before the first signature. Only of the embedded store: a failover of
// PostgreSQL, which an operator accepts, replaces records that a running process remembers.

import { coverRange, foldHashes, leafHash } from '../../base/merkle-tree.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories, Store } from '../../ports/store.ts';
import { ChangedDatabase } from './compare-log.ts';

const inPage = 500;

/** Throws ChangedDatabase. */
export const requireWritten = async (
  { written, link }: Pick<Store, 'written' | 'link'>,
  { audit }: Pick<Repositories, 'audit'>,
  size: number,
): Promise<void> => {
  const first = link === undefined ? written.first() : undefined;
  if (first === undefined || first > size) return;
  const fault = (what: string, found: string, expected: string): ChangedDatabase =>
    new ChangedDatabase({
      ...{ state: 'changed', size },
      differences: [{ what, found, foundIn: 'its audit log', expected, expectedIn: 'the memory of this process' }],
    });
  const leaves: Buffer[] = [];
  for (let next = first; next <= size; ) {
    const page = await audit.list(
      everyTenant,
      { order: 'oldest' },
      { after: String(next - 1), limit: Math.min(inPage, size - next + 1) },
    );
    if (page.length === 0) throw fault(`audit record ${next}`, 'none', 'one that this process has written');
    for (const event of page) {
      const leaf = leafHash(Buffer.from(auditEntry(event), 'utf8'));
      const known = written.hashOf(event.sequence);
      if (event.sequence !== next || known?.equals(leaf) !== true)
        throw fault(`hash of audit record ${next}`, leaf.toString('hex'), known?.toString('hex') ?? 'no such record');
      leaves.push(leaf);
      next += 1;
    }
  }
  for (const { level, position } of coverRange(first - 1, size)) {
    const from = position * 2 ** level - (first - 1);
    const hash = foldHashes(leaves.slice(from, from + 2 ** level));
    const stored = await audit.subtree(level, position);
    if (!stored.equals(hash))
      throw fault(`tree over audit record ${from + first}`, stored.toString('hex'), hash.toString('hex'));
  }
};
