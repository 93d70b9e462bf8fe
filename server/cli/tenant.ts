// `dke tenant`: who everything belongs to, and the whole life of one.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Caller } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.tenants;

/** The id of a tenant, given by id or name; purged ones by id alone. */
export const resolveTenant = async ({ call }: Pick<Caller, 'call'>, text: string): Promise<string> => {
  const { items } = await call(routes.list);
  const found =
    items.find(({ id }) => id === text) ?? items.find(({ name, state }) => name === text && state !== 'purged');
  if (found === undefined)
    throw new CommandError('not-found', `there is no tenant ${text}`, {
      hint: 'dke tenant list shows those that there are; case matters',
    });
  return found.id;
};

export const addTenant = (program: Command): void => {
  const noun = program.command('tenant').summary('tenants: who everything belongs to');

  noun
    .command('create <name>')
    .description('Makes a tenant: with keys of its own, and nothing in it.')
    .action(
      action(async ({ call, output }, _, name) => {
        output.record(await call(routes.create, { body: { name } }));
      }),
    );

  noun
    .command('list')
    .description('Lists tenants, purged ones too.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.list), [
          ['ID', (row) => row.id],
          ['NAME', (row) => row.name],
          ['STATE', (row) => row.state],
          ['CREATED', (row) => row.createdAt],
          ['PURGED FROM', (row) => row.purgeAt ?? ''],
        ]);
      }),
    );

  noun
    .command('show <tenant>')
    .alias('get')
    .description('Shows a tenant, by id or name.')
    .action(
      action(async (caller, _, tenant) => {
        const path = { id: await resolveTenant(caller, tenant) };
        caller.output.record(await caller.call(routes.get, { path }));
      }),
    );

  noun
    .command('rename <tenant> <name>')
    .description('Gives a tenant another name; what belongs to it goes by its id.')
    .action(
      action(async (caller, _, tenant, name) => {
        const path = { id: await resolveTenant(caller, tenant) };
        caller.output.record(await caller.call(routes.rename, { path, body: { name } }));
      }),
    );

  for (const [verb, description] of [
    ['resume', 'Takes a suspended tenant into use again.'],
    ['restore', 'Brings a deleted tenant back as it was, while its retention lasts.'],
  ] as const)
    noun
      .command(`${verb} <tenant>`)
      .description(description)
      .action(
        action(async (caller, _, tenant) => {
          const path = { id: await resolveTenant(caller, tenant) };
          caller.output.record(await caller.call(routes[verb], { path }));
        }),
      );

  for (const [verb, description, consequence] of [
    ['suspend', 'Stops everything in a tenant at once, until it is resumed.', 'stops at once, until it is resumed'],
    ['delete', 'Stops everything in a tenant at once; it can be restored for a time.', 'stops at once'],
    ['purge', 'Erases a deleted tenant, for good: nothing of it can be read again.', 'is erased, for good'],
  ] as const)
    noun
      .command(`${verb} <tenant>`)
      .description(description)
      .option('--dry-run', 'show what it would stop, and change nothing')
      .option('--confirm <name>', 'the name of the tenant, to go on without a question')
      .action(
        action<{ readonly confirm?: string; readonly dryRun?: boolean }>(async (caller, options, tenant) => {
          const { call, output } = caller;
          const path = { id: await resolveTenant(caller, tenant) };
          const planned = await call(routes[verb], { path, query: { dryRun: 'true' } });
          if (options.dryRun === true) {
            output.record(planned);
            return;
          }
          const { endpoints, applications, keys, tokens, exportedCopies } = planned.impact;
          const { name } = planned.tenant;
          await confirm(
            `Tenant ${name} ${consequence}: ${endpoints} endpoints, ${applications} applications of databases, ${keys} keys, ${tokens} tokens.${
              exportedCopies === 0 ? '' : ` ${exportedCopies} exported snapshot copies are not erased.`
            }`,
            name,
            options.confirm,
          );
          const done =
            verb === 'purge'
              ? await call(routes.purge, { path, body: { confirm: name } })
              : await call(routes[verb], { path });
          output.record(done);
        }),
      );
};
