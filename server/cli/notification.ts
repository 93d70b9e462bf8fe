// `dke notification`: what needs attention before it does harm.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged } from './caller.ts';
import { CommandError } from './exit-codes.ts';

const routes = apiRoutes.notifications;

interface ListOptions extends Paging {
  readonly state?: string;
  readonly kind?: string;
  readonly leastSeverity?: string;
  readonly taken?: true;
  readonly notTaken?: true;
}

export const addNotification = (program: Command): void => {
  const noun = program.command('notification').summary('alerts that need action, most urgent first');

  paged(noun.command('list').description('Lists notifications: open ones by the time of their harm.'))
    .option('--state <state>', 'open, or resolved in the last 90 days')
    .option('--kind <kind>', 'for example tls.certificate-ending')
    .option('--least-severity <severity>', 'info, low, medium, high or critical, and all above it')
    .option('--taken', 'only acknowledged ones')
    .option('--not-taken', 'only those that are not acknowledged')
    .action(
      action<ListOptions>(async ({ call, output }, { taken, notTaken, ...query }) => {
        if (taken === true && notTaken === true)
          throw new CommandError('config', '--taken and --not-taken leave nothing to show');
        const which = taken === true ? 'true' : notTaken === true ? 'false' : undefined;
        output.list(
          await call(routes.list, { query: { ...query, ...(which === undefined ? {} : { taken: which }) } }),
          [
            ['HARM AT', (row) => row.harmAt],
            ['SEVERITY', (row) => row.severity],
            ['WHAT', (row) => row.text],
            ['WHAT TO DO', (row) => row.cure],
            ['TAKEN BY', (row) => row.acknowledgedBy],
            ['ID', (row) => row.id],
          ],
        );
      }),
    );

  noun
    .command('acknowledge <notification-id>')
    .description('Says that you take care. It stays until its cause is gone, and asks again when it grows worse.')
    .action(
      action(async ({ call, output }, _, id) => {
        output.record(await call(routes.acknowledge, { path: { id } }));
      }),
    );

  noun
    .command('release <notification-id>')
    .description('Withdraws the acknowledgement: the notification is shown again.')
    .action(
      action(async ({ call, output }, _, id) => {
        output.record(await call(routes.release, { path: { id } }));
      }),
    );

  noun
    .command('targets')
    .description('Lists where notifications are sent to: webhooks and addresses of the configuration file.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.targets), [
          ['NAME', (row) => row.name],
          ['TYPE', (row) => row.type],
          ['TARGET', (row) => row.target],
          ['WAITING', (row) => row.waiting],
          ['DELIVERED', (row) => row.deliveredAt],
          ['FAILS', (row) => row.failure?.message],
        ]);
      }),
    );

  noun
    .command('test')
    .description('Sends a test to every target.')
    .action(
      action(async ({ call, output }) => {
        const answer = await call(routes.test);
        output.list(answer, [
          ['NAME', (row) => row.name],
          ['RESULT', (row) => row.failure ?? 'delivered'],
        ]);
        const failed = answer.items.filter(({ failure }) => failure !== null);
        if (failed.length > 0)
          throw new CommandError('checks-failed', `${failed.length} of the targets cannot be reached`);
      }),
    );
};
