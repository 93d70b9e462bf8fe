// `dke search`: whatever has a name or an id.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { nounOf } from '../service/command-rows.ts';

export const addSearch = (program: Command): void => {
  nounOf(program).row(
    operations.search.find,
    'search <words...>',
    'Finds keys, vaults, databases, endpoints, users, tokens and tenants by the beginning of a word of their names or by their ids; ' +
      'records of the request log and of the audit log by request ids, and of the audit log by who acted. Shows what the lists would show.',
    {
      options: {
        '--kind <kinds>': 'only these kinds, separated by commas: key, vault, user, request, audit-actor, ...',
        '--limit <count>': { help: 'maximum number for each kind, 1 to 100', default: '10' },
      },
      as: { words: 'q' },
      text: (output, answer) => {
        output.list(answer, { KIND: 'kind', NAME: 'name', ID: 'id', STATE: 'state', 'FOUND IN': 'foundIn' });
        if (answer.searched.length === 0)
          output.say('nothing was searched: you have no role in this tenant (dke token whoami)');
        if (answer.more.length > 0)
          output.say(
            `there are more: ${answer.more.join(', ')}; enter more of the name, or use --kind and --limit 100`,
          );
      },
    },
  );
};
