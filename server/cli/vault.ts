// `dke vault`: where keys are.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged } from './caller.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.vaults;

export const addVault = (program: Command): void => {
  const noun = program.command('vault').summary('vaults: where keys are');

  noun
    .command('create <name>')
    .description('Makes a vault.')
    .action(
      action(async ({ call, output }, _, name) => {
        output.record(await call(routes.create, { body: { name } }));
      }),
    );

  paged(noun.command('list').description('Lists vaults.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(routes.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['NAME', (row) => row.name],
        ['KIND', (row) => row.kind],
        ['STATE', (row) => row.state],
        ['CREATED', (row) => row.createdAt],
      ]);
    }),
  );

  noun
    .command('get <vault>')
    .description('Shows a vault, by id or name.')
    .action(
      action(async ({ call, output, resolve }, _, vault) => {
        output.record(await call(routes.get, { path: { id: await resolve('vault', vault) } }));
      }),
    );

  for (const [verb, description] of [
    ['enable', 'Takes a vault into use again.'],
    ['disable', 'Look-ups of its keys fail until it is enabled again.'],
  ] as const)
    noun
      .command(`${verb} <vault>`)
      .description(description)
      .action(
        action(async ({ call, output, resolve }, _, vault) => {
          output.record(await call(routes[verb], { path: { id: await resolve('vault', vault) } }));
        }),
      );

  noun
    .command('delete <vault>')
    .description('Deletes a vault: its keys are found no more.')
    .option('--confirm <name>', 'the name of the vault, to go on without a question')
    .action(
      action<{ readonly confirm?: string }>(async ({ call, output, resolve }, options, vault) => {
        const path = { id: await resolve('vault', vault) };
        const { name } = await call(routes.get, { path });
        await confirm(`The keys of vault ${name} will be found no more.`, name, options.confirm);
        output.record(await call(routes.delete, { path }));
      }),
    );
};
