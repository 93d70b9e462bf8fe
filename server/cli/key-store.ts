// `dke key-store`: external key stores, the cloud's side of an endpoint, and whether they are connected.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged } from './caller.ts';

const routes = apiRoutes.externalKeyStores;

export const addKeyStore = (program: Command): void => {
  const noun = program.command('key-store').summary('external key stores: the cloud’s side of an endpoint');

  noun
    .command('register <name>')
    .description('Registers a custom key store of the cloud; DKE then checks its connection regularly.')
    .requiredOption('--id <custom-key-store-id>', 'cks-... of the cloud')
    .requiredOption('--region <region>', 'of the cloud, for example eu-central-1')
    .requiredOption('--endpoint <endpoint>', 'id or name of the endpoint that it calls')
    .action(
      action<{ readonly id: string; readonly region: string; readonly endpoint: string }>(
        async ({ call, output, resolve }, { id, region, endpoint }, name) => {
          const body = { name, customKeyStoreId: id, region, endpointId: await resolve('endpoint', endpoint) };
          output.record(await call(routes.register, { body }));
        },
      ),
    );

  paged(noun.command('list').description('Lists external key stores with their connection.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(routes.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['NAME', (row) => row.name],
        ['CUSTOM KEY STORE', (row) => row.customKeyStoreId],
        ['CONNECTION', (row) => row.connection.state],
        ['ERROR', (row) => row.connection.errorCode],
        ['SINCE', (row) => row.connection.since],
        ['SAYS', (row) => row.connection.source],
      ]);
    }),
  );

  for (const [verb, description] of [
    ['get', 'Shows an external key store, by id or name.'],
    ['probe', 'Checks its connection now.'],
    ['remove', 'Forgets it. Nothing changes in the cloud or at the endpoint.'],
  ] as const)
    noun
      .command(`${verb} <key-store>`)
      .description(description)
      .action(
        action(async ({ call, output, resolve }, _, name) => {
          output.record(await call(routes[verb], { path: { id: await resolve('external key store', name) } }));
        }),
      );
};
