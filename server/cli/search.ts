// `dke search`: whatever has a name or an id.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action } from './caller.ts';

export const addSearch = (program: Command): void => {
  program
    .command('search <words...>')
    .summary('find whatever has a name or an id')
    .description(
      'Finds keys, vaults, databases, endpoints, people, tokens and tenants by the beginning of a word of their names or by their ids; ' +
        'records of the request log and of the audit log by request ids, and of the audit log by who acted. Shows what the lists would show.',
    )
    .option('--kind <kinds>', 'of these kinds only, with commas between: key, vault, user, request, audit-actor, ...')
    .option('--limit <count>', 'at most so many of each kind, 1 to 100', '10')
    .action(async (words: readonly string[], options: unknown, command: unknown) => {
      await action<{ readonly kind?: string; readonly limit: string }>(
        async ({ call, output }, { kind, limit }, text) => {
          const query = { q: text ?? '', limit, ...(kind === undefined ? {} : { kind }) };
          const answer = await call(apiRoutes.search.find, { query });
          if (output.format === 'json') return output.record(answer);
          output.list(answer, [
            ['KIND', (row) => row.kind],
            ['NAME', (row) => row.name],
            ['ID', (row) => row.id],
            ['STATE', (row) => row.state],
            ['FOUND IN', (row) => row.foundIn],
          ]);
          if (answer.searched.length === 0)
            output.say('nothing was searched: you have no role here (dke token whoami)');
          if (answer.more.length > 0)
            output.say(`there are more: ${answer.more.join(', ')}; give more of the name, or --kind and --limit 100`);
        },
      )(words.join(' '), options, command);
    });
};
