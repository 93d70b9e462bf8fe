// Before a checkpoint is signed, or kept next to the root key: the log must be the one that this
// node has written and read. A writer of the database has no time before the first signature: what
// it changes in a record differs from the tree that the node has in memory and, for a start, on its
// own disk.
//
// On PostgreSQL, a failover can take back what a node knows. What no node has read again is
// forgotten with it: only then is a record in the tree. Of what is missing, the changes that led
// there are gone, or the database has another lineage: that is named as lost, until an operator
// takes the database as it is, and with it the log (`takeLog`). Otherwise the log was rewritten.

import { coverRange, leafHash } from '../../base/merkle-tree.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { lostDifferences } from '../../domain/change-protocol.ts';
import { type Difference, differencesOf } from '../../domain/difference.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories, Store, WrittenRecords } from '../../ports/store.ts';
import { rootHashOf, rootOf } from '../shared/tree-of-log.ts';
import { ChangedDatabase } from './compare-log.ts';

const inPage = 500;
const expectedIn = 'the memory of this process';

type Known = Pick<Store, 'written' | 'link'>;

/** What the log has become until now is what this node knows of it. */
export const takeLog = async ({ store }: { readonly store: Pick<Store, 'write' | 'written'> }): Promise<void> =>
  store.write(
    async ({ audit }) => {
      const parts = coverRange(0, await audit.size());
      const found = [];
      for (const { level, position } of parts) found.push({ level, hash: await audit.subtree(level, position) });
      store.written.startFrom(found);
    },
    { durable: false },
  );

/** Undefined: no change is gone. */
const lostChange = async ({ written, link }: Known): Promise<readonly Difference[] | undefined> => {
  const { last } = written;
  const found = last === undefined ? undefined : await link?.changesSince(last, Number.MAX_SAFE_INTEGER);
  if (last === undefined || typeof found !== 'object' || !('lost' in found)) return undefined;
  return lostDifferences(found.lost, last, expectedIn);
};

/**
 * Throws ChangedDatabase. `tree`: as it was known before the state that is compared was fixed: what
 * was read since may be newer.
 */
export const requireWritten = async (
  known: Known,
  { audit }: Pick<Repositories, 'audit'>,
  tree: WrittenRecords['tree'],
): Promise<void> => {
  const { written, link } = known;
  const size = await audit.size();
  const fault = async (what: string, found: string, expected: string): Promise<never> => {
    const differences = [{ what, found, foundIn: 'its audit log', expected, expectedIn }] as const;
    const lost = differencesOf((await lostChange(known)) ?? []) ?? (written.isMoved ? differences : undefined);
    throw new ChangedDatabase(
      lost === undefined ? { state: 'changed', size, differences } : { state: 'lost-changes', differences: lost },
    );
  };
  if (tree !== undefined) {
    if (tree.size > size) await fault('number of audit records', String(size), `at least ${tree.size}`);
    const root = await rootOf(audit, tree.size);
    if (root?.equals(tree.root) !== true)
      await fault(rootHashOf(tree.size), root?.toString('hex') ?? 'not complete', tree.root.toString('hex'));
  }
  for (let next = written.first() ?? size + 1; next <= size; ) {
    const page = await audit.list(
      everyTenant,
      { order: 'oldest' },
      { after: String(next - 1), limit: Math.min(inPage, size - next + 1) },
    );
    if (page.length === 0) await fault(`audit record ${next}`, 'none', 'one that this process has written');
    for (const event of page) {
      const leaf = leafHash(Buffer.from(auditEntry(event), 'utf8'));
      const own = written.hashOf(event.sequence);
      // Only where other processes write as well, there are records of others.
      const isOthers = own === undefined && link !== undefined;
      if (event.sequence !== next || (!isOthers && own?.equals(leaf) !== true))
        await fault(`hash of audit record ${next}`, leaf.toString('hex'), own?.toString('hex') ?? 'no such record');
      next += 1;
    }
  }
};
