// Latencies of key store endpoints, a row for each minute, endpoint and process.

import type { Kysely } from 'kysely';
import { addLatency, formatLatency, newLatencyCounts, parseLatency } from '../../../domain/latency.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { Schema } from '../schema/schema.ts';

export const createLatency = (db: Kysely<Schema>): Repositories['latency'] => ({
  add: async (node, minutes) => {
    for (const { endpointId, minute, counts } of minutes) {
      const own = await db
        .selectFrom('xks_latency')
        .selectAll()
        .where('minute', '=', minute)
        .where('endpoint_id', '=', endpointId)
        .where('node', '=', node)
        .executeTakeFirst();
      // A sum of its own: a transaction that fails has changed nothing of what is given.
      const sum = newLatencyCounts();
      addLatency(sum, counts);
      if (own !== undefined) addLatency(sum, parseLatency(own.counts, own.errors));
      const values = { counts: formatLatency(sum), errors: sum.errors };
      await db
        .insertInto('xks_latency')
        .values({ minute, endpoint_id: endpointId, node, ...values })
        .onConflict((conflict) => conflict.columns(['minute', 'endpoint_id', 'node']).doUpdateSet(values))
        .execute();
    }
  },
  list: async (endpointIds, from) =>
    (
      await db
        .selectFrom('xks_latency')
        .select(['endpoint_id', 'minute', 'counts', 'errors'])
        .where('minute', '>=', from)
        .where('endpoint_id', 'in', [...endpointIds])
        .execute()
    ).map((row) => ({
      endpointId: row.endpoint_id,
      minute: row.minute,
      counts: parseLatency(row.counts, row.errors),
    })),
});
