// `dke audit` and `dke status`: what happened, and how the service is.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged } from './caller.ts';

export const addAudit = (program: Command): void => {
  paged(
    program.command('audit').summary('the audit log').command('list').description('Lists audit records, newest first.'),
  )
    .option('--kind <kind>', 'for example key.destroyed')
    .option('--actor-id <id>', 'of one token or application')
    .option('--subject-id <id>', 'about one resource')
    .option('--request-id <id>', 'of one request')
    .option('--from <time>', 'RFC 3339, inclusive')
    .option('--to <time>', 'RFC 3339, exclusive')
    .option('--order <order>', 'newest or oldest')
    .action(
      action<Paging & Readonly<Record<string, string>>>(async ({ call, output }, query) => {
        output.list(await call(apiRoutes.audit.list, { query: { ...query } }), [
          ['AT', (row) => row.at],
          ['WHAT', (row) => row.kind],
          ['WHO', (row) => `${row.actorKind} ${row.actorName}`],
          ['ABOUT', (row) => `${row.subjectKind} ${row.subjectId}`],
          ['FROM', (row) => row.peer],
          ['REQUEST', (row) => row.requestId],
        ]);
      }),
    );
};

export const addStatus = (program: Command): void => {
  program
    .command('status')
    .summary("the service's state")
    .description('Shows version, health, storage, erasure and locked memory.')
    .action(
      action(async ({ call, output }) => {
        output.record(await call(apiRoutes.status.get));
      }),
    );
};
