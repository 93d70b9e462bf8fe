// `dke vault`: where keys are.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { AnswerOf } from '../fronts/contract/api/row.ts';
import type { DualControlRule, Vault } from '../fronts/contract/api/vaults.ts';
import { action, type Paging, paged } from './caller.ts';
import { confirm, type Output } from './output.ts';

const routes = apiRoutes.vaults;

interface RuleOptions {
  readonly approvals: string;
  readonly for?: string;
  readonly approver?: readonly string[];
  readonly refuseDatabases?: boolean;
  readonly dryRun?: boolean;
}
type Answer = AnswerOf<typeof routes.dualControl>;

const addDualControl = (vault: Command): void => {
  const noun = vault.command('dual-control').summary('what m of n others must agree to');
  const shown = (output: Output, { plan, rule, approvers, ...answer }: Answer): void => {
    if (plan !== undefined) output.record(plan);
    else if (output.format === 'json') output.record({ ...answer, rule, approvers });
    else if (rule === null) output.say('none: one person is enough');
    else {
      output.record(rule);
      output.list({ items: approvers }, [
        ['MAY AGREE', (row) => row.name],
        ['ID', (row) => row.id],
      ]);
    }
  };

  noun
    .command('show <vault>')
    .description('Shows the rule, and who could agree now.')
    .action(
      action(async ({ call, output, resolve }, _, name) => {
        shown(output, await call(routes.dualControl, { path: { id: await resolve('vault', name) } }));
      }),
    );

  noun
    .command('set <vault>')
    .description(
      'Sets the rule. A stricter one applies at once; a weaker one needs the approvals that the current rule asks for. ' +
        'For the master keys of a TDE group, name the vault of the group.',
    )
    .requiredOption('--approvals <count>', 'how many others must agree')
    .option('--for <actions>', 'what they must agree to', 'destroy,export,restore')
    .option('--approver <token...>', 'only these may approve, by id or name; when absent, everyone who has the role')
    .option('--refuse-databases', 'databases cannot destroy their master keys by themselves (C_DestroyObject)')
    .option('--dry-run', 'show who must agree, change nothing')
    .action(
      action<RuleOptions>(async ({ call, output, resolve }, options, name) => {
        const approvers = await Promise.all((options.approver ?? []).map((each) => resolve('token', each)));
        const body = {
          required: Number(options.approvals),
          // The service refuses what is none, and says so.
          actions: (options.for ?? '').split(',').filter((each) => each !== '') as DualControlRule['actions'],
          approvers: approvers.length === 0 ? null : approvers,
          databases: options.refuseDatabases === true ? ('refused' as const) : ('allowed' as const),
        };
        const path = { id: await resolve('vault', name) };
        const query = { dryRun: options.dryRun === true ? 'true' : undefined };
        shown(output, await call(routes.setDualControl, { path, query, body }));
      }),
    );

  noun
    .command('remove <vault>')
    .description('Takes the rule away, when those agree whom it asks for.')
    .option('--dry-run', 'show who must agree, change nothing')
    .action(
      action<{ readonly dryRun?: boolean }>(async ({ call, output, resolve }, { dryRun }, name) => {
        const path = { id: await resolve('vault', name) };
        const query = { dryRun: dryRun === true ? 'true' : undefined };
        shown(output, await call(routes.removeDualControl, { path, query }));
      }),
    );
};

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
    .description('Deletes a vault: its keys become unavailable.')
    .option('--confirm <name>', 'the name of the vault, to go on without a question')
    .option('--dry-run', 'show what it would mean and who must agree, change nothing')
    .action(
      action<{ readonly confirm?: string; readonly dryRun?: boolean }>(
        async ({ call, output, resolve }, options, vault) => {
          const path = { id: await resolve('vault', vault) };
          if (options.dryRun === true)
            return output.record((await call(routes.delete, { path, query: { dryRun: 'true' } })).plan ?? {});
          const { name } = await call(routes.get, { path });
          await confirm(`The keys of vault ${name} will become unavailable.`, name, options.confirm);
          output.record(await call(routes.delete, { path }));
        },
      ),
    );

  noun
    .command('profile <vault> <profile>')
    .description('Says how often its keys are to be rotated: standard (6 to 12 months) or high-security (3 to 6).')
    .action(
      action(async ({ call, output, resolve }, _, vault, profile) => {
        const path = { id: await resolve('vault', vault) };
        // The service refuses what is none, and says so.
        const body = { profile: profile as Vault['profile'] };
        output.record(await call(routes.setProfile, { path, body }));
      }),
    );

  addDualControl(noun);
};
