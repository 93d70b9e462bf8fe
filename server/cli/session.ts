// `dke session`: who is signed in at the console.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, everyItem, type Paging, paged } from './caller.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.sessions;

export const addSession = (program: Command): void => {
  const noun = program.command('session').summary('who is signed in at the console');

  paged(noun.command('list').description('Lists sessions, newest first.'))
    .option('--user <user>', 'of this user alone, by id or name')
    .action(
      action<Paging & { readonly user?: string }>(async ({ call, output, resolve }, { user, ...query }) => {
        const userId = user === undefined ? undefined : await resolve('user', user);
        output.list(await call(routes.list, { query: { ...query, userId } }), [
          ['ID', (row) => row.id],
          ['WHO', (row) => `${row.holder.kind} ${row.holder.name}`],
          ['BY', (row) => `${row.method}${row.secondFactor ? ', second factor' : ''}`],
          ['FROM', (row) => row.peer],
          ['STARTED', (row) => row.createdAt],
          ['LAST USED', (row) => row.usedAt],
          ['ENDS', (row) => row.expiresAt],
        ]);
      }),
    );

  noun
    .command('end <id>')
    .description('Ends a session at once.')
    .action(
      action(async ({ call, output }, _, id) => {
        output.record(await call(routes.end, { path: { id } }));
      }),
    );

  noun
    .command('rotate-key')
    .description('Gives sessions a new key. All sessions end; API tokens, access_guids and credentials stay valid.')
    .option('--confirm <word>', 'go on without a question: "end"')
    .action(
      action<{ readonly confirm?: string }>(async ({ call, output }, options) => {
        const { length } = await everyItem((query) => call(routes.list, { query }));
        await confirm(`All sessions end at once: ${length}. Everyone signs in again.`, 'end', options.confirm);
        output.record(await call(routes.rotateKey));
      }),
    );
};
