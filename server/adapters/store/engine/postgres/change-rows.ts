// The changes that nodes tell one another: a row for each, kept until every node that is connected
// has read it.

import type { RowAuthenticator } from '../../../../base/row-jobs.ts';
import { type ChangeMark, continuationOf } from '../../../../domain/change-protocol.ts';
import type { Changes } from '../../../../domain/changes.ts';
import type { NodeLink } from '../../../../ports/node-link.ts';
import { codeOfChange } from '../../rows/change-codes.ts';
import { channel, isInHistory, nowSql, type Query } from './link-query.ts';

/** How many changes and hashes of records one answer has at most. */
const mostChanges = 1_000;
const mostLeaves = 4_000;

export const createChangeRows = (
  query: Query,
  authenticate: RowAuthenticator,
): Pick<NodeLink, 'changesSince' | 'pruneChanges' | 'tellShown'> => ({
  changesSince: async (mark, records) => {
    // One statement sees one state: the head, and the changes that lead to it.
    const rows = await query(
      `select h.epoch as head_epoch, h.history as head_history, c.epoch, c.previous, c.history, c.previous_history, c.changes, c.code,
              (select version from row_set) as rows_version,
              case when row_number() over (order by c.epoch) = 1 then
                array(select leaf_hash from audit_events where sequence > $2 order by sequence limit ${mostLeaves}) end as leaves
       from node_head h left join (
         select * from node_changes where epoch > $1 order by epoch limit ${mostChanges}) c on true
       order by c.epoch`,
      [mark.epoch, records],
    );
    const [first] = rows;
    const head: ChangeMark = { epoch: Number(first?.head_epoch), history: String(first?.head_history) };
    const next =
      first === undefined || first.epoch === null
        ? undefined
        : { epoch: Number(first.previous), history: String(first.previous_history) };
    const how = continuationOf(mark, { head, next });
    // Either the head is not beyond it, or the changes that are kept follow another one with its
    // number.
    if (how === 'lost') return { lost: head.epoch > mark.epoch && next !== undefined ? next : head };
    if (how === 'reload') return 'pruned';
    const at = {
      leaves: (first?.leaves ?? []) as readonly Buffer[],
      rows: Number(first?.rows_version ?? 0),
    };
    if (how === 'nothing') return { ...at, last: mark, changes: [], marks: [], more: false };
    // Each names the one before it: of one that was taken out from between, nothing is known.
    const isWhole = rows.every((row, at) => {
      const before = rows[at - 1];
      return before === undefined || (row.previous === before.epoch && row.previous_history === before.history);
    });
    if (!isWhole) return 'pruned';
    const isOurs = rows.every(({ epoch, history, previous, previous_history, changes, code }) => {
      const mark = { epoch: Number(epoch), history: String(history) };
      const before = { epoch: Number(previous), history: String(previous_history) };
      return codeOfChange(authenticate, mark, before, String(changes)) === code;
    });
    if (!isOurs) return 'changed';
    const newest = rows.at(-1);
    const last = { epoch: Number(newest?.epoch), history: String(newest?.history) };
    return {
      ...at,
      last,
      changes: rows.map((row) => JSON.parse(String(row.changes)) as Changes),
      marks: rows.map((row) => ({ epoch: Number(row.epoch), history: String(row.history) })),
      more: Number(newest?.epoch) < head.epoch,
    };
  },
  pruneChanges: async (olderThanMs) => {
    await query(`delete from node_changes where at < ${nowSql} - $1`, [olderThanMs]);
  },
  tellShown: async (id, { epoch, history }) => {
    await query(`select pg_notify($1, $2) where ${isInHistory('$3::bigint', '$4')}`, [
      channel,
      `applied ${id} ${epoch}`,
      epoch,
      history,
    ]);
  },
});
