// The request log says which way a request came to the cloud: the VPC, its endpoint, and the
// service that asked for its caller. Records from before have none.

import type { SchemaMigration } from './migration.ts';

export const waysOfRequests: SchemaMigration = {
  name: '0010-ways-of-requests',
  up: async (db, { compareBytewise }) => {
    for (const column of ['aws_source_vpc', 'aws_source_vpce', 'kms_via_service'])
      await db.schema.alterTable('request_log').addColumn(column, 'text').execute();
    await compareBytewise(db, ['request_log']);
  },
};
