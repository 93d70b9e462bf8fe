// `dke clock`: the time that decides deadlines, and its confirmation after the clock has jumped.

import { type Command, InvalidArgumentError } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.clock;

const toTime = (text: string): string => {
  if (
    !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text) ||
    Number.isNaN(Date.parse(text))
  )
    throw new InvalidArgumentError('A time with its zone, for example 2026-03-01T09:30:00Z.');
  return text;
};

export const addClock = (program: Command): void => {
  const noun = addNoun(program, 'clock');
  noun.row(routes.get, 'show', 'Shows the time that decides deadlines, and whether the clock has jumped.');
  noun.row(
    routes.confirm,
    'confirm',
    'Confirms the time after the clock has jumped. Everything that is due by that time is destroyed within the next minute. Audited.',
    {
      options: {
        '--time <time>': {
          help: 'the current time, from a clock that you trust, not the clock of the service',
          required: true,
          parse: toTime,
        },
      },
    },
  );
};
