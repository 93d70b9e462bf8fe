// `dke clock`: the time that decides deadlines, and its confirmation after the clock has jumped.

import { type Command, InvalidArgumentError } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action } from './caller.ts';

const routes = apiRoutes.clock;

const toTime = (text: string): string => {
  if (
    !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text) ||
    Number.isNaN(Date.parse(text))
  )
    throw new InvalidArgumentError('A time with its zone, for example 2026-03-01T09:30:00Z.');
  return text;
};

export const addClock = (program: Command): void => {
  const noun = program.command('clock').summary('the time that decides deadlines');
  noun
    .command('show')
    .description('Shows the time that decides deadlines, and whether the clock has jumped.')
    .action(action(async ({ call, output }) => output.record(await call(routes.get))));
  noun
    .command('confirm')
    .description(
      'Confirms the time after the clock has jumped. What is due by it is destroyed within the next minute. Audited.',
    )
    .requiredOption('--time <time>', 'what time it is by a clock that you trust, not by that of the service', toTime)
    .action(
      action<{ readonly time: string }>(async ({ call, output }, { time }) =>
        output.record(await call(routes.confirm, { body: { time } })),
      ),
    );
};
