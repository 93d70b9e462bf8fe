// `dke setup`: how far the setup of a service is.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { Setup } from '../../contract/api/setup-routes.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.setup;
type Step = Setup['steps'][number];

export const addSetup = (program: Command): void => {
  const noun = addNoun(program, 'setup');
  const table = {
    page: ({ steps }: Setup) => ({ items: steps }),
    columns: {
      STEP: 'step',
      STATE: 'state',
      FINDING: 'finding',
      'CONFIRMED BY': (row: Step) => row.confirmed?.by,
    },
  } as const;
  noun.row(routes.get, 'show', 'Shows how far the setup is, from the root key to the first verified snapshot.', table);
  for (const [verb, confirmed, description] of [
    ['confirm', true, 'Accepts the risk of a step that is not done: it stays a warning.'],
    ['reopen', false, 'Withdraws that the risk of a step is accepted.'],
  ] as const)
    noun.row(routes.confirm, `${verb} <step>`, description, { ...table, also: () => ({ body: { confirmed } }) });
};
