// `dke setup`: how far the set-up of a service is.

import { Argument, type Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { type Setup, settledStepSchema } from '../fronts/contract/api/setup.ts';
import { action } from './caller.ts';
import type { Output } from './output.ts';

const routes = apiRoutes.setup;

const show = (output: Output, { steps }: Setup): void => {
  output.list({ items: steps }, [
    ['STEP', (row) => row.step],
    ['STATE', (row) => row.state],
    ['WHAT THE SERVICE SEES', (row) => row.finding],
    ['SETTLED BY', (row) => row.settled?.by],
  ]);
};

export const addSetup = (program: Command): void => {
  const noun = program.command('setup').summary('the first steps of a service');

  noun
    .command('show')
    .description(
      'Shows how far the set-up is: root key, administrator, audit sinks, recovery key, first verified snapshot.',
    )
    .action(
      action(async ({ call, output }) => {
        show(output, await call(routes.get));
      }),
    );

  for (const [verb, settled, description] of [
    ['settle', true, 'Says that a step is settled of which the service cannot see it.'],
    ['reopen', false, 'Says that a step is not settled after all.'],
  ] as const)
    noun
      .command(verb)
      .addArgument(new Argument('<step>', 'of the set-up').choices(settledStepSchema.options))
      .description(description)
      .action(
        action(async ({ call, output }, _, step) => {
          show(output, await call(routes.settle, { body: { step: settledStepSchema.parse(step), settled } }));
        }),
      );
};
