// `dke approval`: what dual control holds back until others agree.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged } from './caller.ts';

const routes = apiRoutes.approvals;

export const addApproval = (program: Command): void => {
  const noun = program.command('approval').summary('what waits until others agree (dual control)');

  paged(noun.command('list').description('Lists requests for approval, newest first.'))
    .option('--state <state>', 'pending, approved, carried-out, refused, withdrawn, expired or outdated')
    .option('--subject-id <id>', 'about one key, vault or application')
    .action(
      action<Paging & { readonly state?: string; readonly subjectId?: string }>(async ({ call, output }, query) => {
        output.list(await call(routes.list, { query: { ...query } }), [
          ['ID', (row) => row.id],
          ['OPERATION', (row) => row.operation],
          ['ABOUT', (row) => row.subject.name],
          ['BY', (row) => row.requestedBy.name],
          ['STATE', (row) => row.state],
          ['MISSING', (row) => row.missing],
          ['EXPIRES', (row) => row.expiresAt],
        ]);
      }),
    );

  noun
    .command('show <approval-id>')
    .description('Shows a request: what would be done, what it would mean, and who has agreed.')
    .action(
      action(async ({ call, output }, _, id) => {
        output.record(await call(routes.get, { path: { id } }));
      }),
    );

  for (const [verb, description] of [
    ['approve', 'Agrees to a request. The last agreement that was missing carries the operation out.'],
    ['refuse', 'Refuses a request, and so ends it.'],
  ] as const)
    noun
      .command(`${verb} <approval-id>`)
      .description(description)
      .option('--comment <text>', 'why; the audit log keeps it')
      .action(
        action<{ readonly comment?: string }>(async ({ call, output }, body, id) => {
          output.record(await call(routes[verb], { path: { id }, body }));
        }),
      );

  noun
    .command('withdraw <approval-id>')
    .description('Withdraws a request of your own.')
    .action(
      action(async ({ call, output }, _, id) => {
        output.record(await call(routes.withdraw, { path: { id } }));
      }),
    );
};
