// `dke tenant`: who everything belongs to.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action } from './caller.ts';

const routes = apiRoutes.tenants;

export const addTenant = (program: Command): void => {
  const noun = program.command('tenant').summary('tenants: who everything belongs to');

  noun
    .command('list')
    .description('Lists tenants.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.list), [
          ['ID', (row) => row.id],
          ['NAME', (row) => row.name],
          ['CREATED', (row) => row.createdAt],
        ]);
      }),
    );

  noun
    .command('get <tenant-id>')
    .description('Shows a tenant, by id.')
    .action(
      action(async ({ call, output }, _, id) => {
        output.record(await call(routes.get, { path: { id } }));
      }),
    );
};
