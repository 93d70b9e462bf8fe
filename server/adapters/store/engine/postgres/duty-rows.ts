// Who has which duty: work that one node does for all (domain/node.ts).

import { duties } from '../../../../domain/node.ts';
import type { NodeLink } from '../../../../ports/node-link.ts';
import type { Query } from './link-query.ts';

export const createDutyRows = (query: Query): Pick<NodeLink, 'renewDuties' | 'takeDuty' | 'giveUpDuty'> => ({
  renewDuties: async (own) => {
    // A renewal that is lost with the database's memory looks like one more.
    const rows = await query(
      `with own as (select * from unnest($1::text[], $2::text[], $3::bigint[]) as t (duty, node_id, fence)),
       renewed as (
         update node_duties set renewals = renewals + 1 from own
          where node_duties.duty = own.duty and node_duties.node_id = own.node_id and node_duties.fence = own.fence
          returning node_duties.duty)
       select node_duties.*, renewed.duty is not null as is_renewed, pg_catalog.set_config('synchronous_commit', 'off', true)
         from node_duties left join renewed using (duty)`,
      [own.map(({ duty }) => duty), own.map(({ nodeId }) => nodeId), own.map(({ fence }) => fence)],
    );
    const known = rows.flatMap((row) => {
      const duty = duties.find((each) => each === row.duty);
      return duty === undefined ? [] : [{ row, duty }];
    });
    return {
      rows: known.map(({ row, duty }) => ({
        duty,
        nodeId: row.node_id === null ? null : String(row.node_id),
        fence: Number(row.fence),
        renewals: Number(row.renewals),
      })),
      renewed: new Set(known.filter(({ row }) => row.is_renewed === true).map(({ duty }) => duty)),
    };
  },
  takeDuty: async ({ duty, nodeId: before, fence, renewals }, nodeId) => {
    const [taken] =
      fence === 0
        ? await query(
            `insert into node_duties (duty, node_id, fence, renewals) values ($1, $2, 1, 0)
             on conflict (duty) do nothing returning fence`,
            [duty, nodeId],
          )
        : await query(
            `update node_duties set node_id = $2, fence = fence + 1, renewals = 0 where duty in
               (select duty from node_duties
                 where duty = $1 and node_id is not distinct from $3 and fence = $4 and renewals = $5 for update skip locked)
             returning fence`,
            [duty, nodeId, before, fence, renewals],
          );
    return taken === undefined ? undefined : Number(taken.fence);
  },
  giveUpDuty: async ({ duty, nodeId, fence }) => {
    await query('update node_duties set node_id = null where duty = $1 and node_id = $2 and fence = $3', [
      duty,
      nodeId,
      fence,
    ]);
  },
});
