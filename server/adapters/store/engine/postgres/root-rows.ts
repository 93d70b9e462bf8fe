// The run that gives all nodes a new root key, and the sealed key that waits for each of them.

import type { RootRun } from '../../../../domain/root-run.ts';
import type { DutyHold, NodeLink } from '../../../../ports/node-link.ts';
import { channel, type Query, toRootRun } from './link-query.ts';

export const createRootRows = (
  query: Query,
): Pick<NodeLink, 'rootRun' | 'setRootRun' | 'putParcel' | 'parcel' | 'wipeParcel'> => {
  const setRootRun = async (
    before: RootRun | undefined,
    after: RootRun | undefined,
    hold: DutyHold | undefined,
  ): Promise<boolean> => {
    // Under a duty, only its owner of now: one that comes late changes nothing.
    const owned =
      '($1::text is null or exists (select from node_duties where duty = $1 and node_id = $2 and fence = $3 for key share))';
    const owner = [hold?.duty ?? null, hold?.nodeId ?? null, hold?.fence ?? null];
    const same = `id = 1 and epoch = $4 and node_id = $5 and phase = $6 and ${owned}`;
    const known = before === undefined ? [] : [before.epoch, before.nodeId, before.phase];
    const next = after === undefined ? [] : [after.epoch, after.nodeId, after.phase];
    if (before === undefined) {
      if (after === undefined) return true;
      const made = await query(
        // What an earlier run has left for other nodes is of another root key.
        `with made as (
           insert into root_runs (id, epoch, node_id, phase) select 1, $4::integer, $5::text, $6::text where ${owned}
           on conflict (id) do nothing returning id),
         cleared as (delete from root_parcels where exists (select from made))
         select id from made`,
        [...owner, ...next],
      );
      return made.length === 1;
    }
    const changed =
      after === undefined
        ? await query(`delete from root_runs where ${same} returning id`, [...owner, ...known])
        : await query(`update root_runs set epoch = $7, node_id = $8, phase = $9 where ${same} returning id`, [
            ...owner,
            ...known,
            ...next,
          ]);
    return changed.length === 1;
  };

  return {
    rootRun: async () => {
      const [row = {}] = await query('select epoch as run, node_id, phase from root_runs where id = 1');
      return toRootRun(row);
    },
    setRootRun: async (before, after, hold) => {
      const changed = await setRootRun(before, after, hold);
      if (changed) await query('select pg_notify($1, $2)', [channel, 'root-run']);
      return changed;
    },
    putParcel: async ({ nodeId, epoch, publicKey, sealed }) => {
      await query(
        `insert into root_parcels (node_id, epoch, public_key, sealed) values ($1, $2, $3, $4)
         on conflict (node_id) do update set epoch = $2, public_key = $3, sealed = $4`,
        [nodeId, epoch, publicKey, sealed],
      );
      await query('select pg_notify($1, $2)', [channel, 'root-run']);
    },
    parcel: async (nodeId) => {
      const [row] = await query('select epoch, public_key, sealed from root_parcels where node_id = $1', [nodeId]);
      return row === undefined
        ? undefined
        : { nodeId, epoch: Number(row.epoch), publicKey: row.public_key as Buffer, sealed: row.sealed as Buffer };
    },
    wipeParcel: async (nodeId) => {
      await query("update root_parcels set sealed = ''::bytea where node_id = $1", [nodeId]);
      await query('delete from root_parcels where node_id = $1', [nodeId]);
    },
  };
};
