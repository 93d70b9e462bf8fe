// `dke vault`: where keys are.

import type { Command } from 'commander';
import { waysBack } from '../../base/way-back.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { AnswerOf } from '../../clients/typescript/operation.ts';
import type { DualControlRule } from '../../contract/api/vaults-routes.ts';
import { addNoun, type Noun } from '../service/command-rows.ts';
import type { Output } from '../terminal/output.ts';

const routes = operations.vaults;
type DualControl = AnswerOf<typeof routes.dualControl>;

const dryRun = { '--dry-run': 'show the required approvals, change nothing' } as const;

const addDualControl = (vault: Noun): void => {
  const noun = vault.noun('dual-control', 'dual control: operations that m of n others must approve');
  const show = {
    value: (answer: DualControl) => answer.plan ?? answer,
    text: (output: Output, { plan, rule, approvers }: DualControl): void => {
      if (plan !== undefined) output.record(plan);
      else if (rule === null) output.say('none: one person is enough');
      else {
        output.record(rule);
        output.list({ items: approvers }, { 'MAY AGREE': 'name', ID: 'id' });
      }
    },
  };
  noun.row(routes.dualControl, 'show <vault>', 'Shows the rule, and who can approve now.', show);
  noun.row(
    routes.setDualControl,
    'set <vault>',
    'Sets the rule. A stricter rule applies immediately. A weaker one needs the approvals that the current rule requires. ' +
      'For the master keys of a TDE group, name the vault of the group.',
    {
      options: {
        '--approvals <count>': { help: 'number of required approvals', required: true },
        '--for <actions>': { help: 'operations that need approval', default: 'destroy,export,restore' },
        '--approver <token...>': 'only these can approve, by id or name; default: everyone with the role',
        '--allow-databases': 'databases can destroy their master keys alone (C_DestroyObject)',
        ...dryRun,
      },
      also: (_, options) => ({
        body: {
          required: Number(options.approvals),
          // The service refuses what is none, and says so.
          actions: options.for.split(',').filter((each) => each !== '') as DualControlRule['actions'],
          approvers: options.approver === undefined ? null : [...options.approver],
          ...(options.allowDatabases === true ? { databases: 'allowed' as const } : {}),
        },
      }),
      ...show,
    },
  );
  noun.row(routes.removeDualControl, 'remove <vault>', 'Removes the rule, after the approvals that it requires.', {
    options: dryRun,
    ...show,
  });
};

/** What the dry run of the deletion of a vault found, for people. */
const vaultEvidence = ({ keys, endpoints, lastUsedAt, lastUsedBy }: Readonly<Record<string, unknown>> = {}): string => {
  const names = Array.isArray(endpoints) ? endpoints.map(String) : [];
  const used =
    lastUsedAt === null ? 'None of them was ever used.' : `One was last used at ${lastUsedAt} by ${lastUsedBy ?? '?'}.`;
  const through = names.length === 0 ? '' : ` Endpoints that will fail: ${names.join(', ')}.`;
  return `It contains ${keys} keys. ${used}${through}`;
};

export const addVault = (program: Command): void => {
  const noun = addNoun(program, 'vault');
  noun.row(routes.create, 'create <name>', 'Creates a vault.');
  noun.row(routes.list, 'list', 'Lists vaults.', {
    columns: { ID: 'id', NAME: 'name', KIND: 'kind', STATE: 'state', CREATED: 'createdAt' },
  });
  noun.row(routes.get, 'show <vault>', 'Shows a vault, by id or name.');
  noun.row(
    routes.rename,
    'rename <vault> <name>',
    'Renames a vault. Its id and its keys stay. Under dual control, others must approve.',
    { options: dryRun, value: (answer) => answer.plan ?? answer },
  );
  noun.row(routes.enable, 'enable <vault>', 'Re-enables a vault.');
  noun.row(routes.disable, 'disable <vault>', 'Look-ups of its keys fail until it is enabled again.');
  noun.row(
    routes.delete,
    'delete <vault>',
    `Deletes a vault: its keys become unavailable. ${waysBack['vault-deleted'].way}`,
    {
      plan: {
        name: ({ name }) => name,
        say: ({ name, plan }) =>
          `The keys of vault ${name} will become unavailable. ${vaultEvidence(plan?.impact)} ${waysBack['vault-deleted'].way}`,
        value: ({ plan }) => plan ?? {},
      },
    },
  );
  noun.row(
    routes.setProfile,
    'profile <vault> <profile>',
    'Sets the rotation period of its keys: standard (6 to 12 months) or high-security (3 to 6 months).',
  );
  addDualControl(noun);
};
