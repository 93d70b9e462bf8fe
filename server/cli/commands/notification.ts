// `dke notification`: what needs attention before it does harm.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';

const routes = operations.notifications;

export const addNotification = (program: Command): void => {
  const noun = addNoun(program, 'notification');
  noun.row(routes.list, 'list', 'Lists notifications, most urgent first.', {
    options: {
      '--state <state>': 'open, or resolved in the last 90 days',
      '--kind <kind>': 'for example tls.certificate-expiring',
      '--min-severity <severity>': 'this severity and higher: info, low, medium, high or critical',
      '--acknowledged': 'only acknowledged ones',
      '--not-acknowledged': 'only notifications that are not acknowledged',
    },
    also: (_, { acknowledged, notAcknowledged }) => {
      if (acknowledged === true && notAcknowledged === true)
        throw new CommandError('config', '--acknowledged and --not-acknowledged cannot be used together');
      return notAcknowledged === true ? { query: { acknowledged: 'false' } } : {};
    },
    columns: {
      'ACT BY': 'harmAt',
      SEVERITY: 'severity',
      WHAT: 'text',
      FIX: 'fix',
      'ACKNOWLEDGED BY': 'acknowledgedBy',
      ID: 'id',
    },
  });
  noun.row(
    routes.acknowledge,
    'acknowledge <notification-id>',
    'Acknowledges a notification. It stays open until its cause is resolved, and is shown again if it becomes more severe.',
  );
  noun.row(
    routes.release,
    'release <notification-id>',
    'Withdraws the acknowledgement: the notification is shown again.',
  );
  noun.row(
    routes.targets,
    'targets',
    'Lists where notifications are sent: webhooks and e-mail addresses in the configuration file.',
    {
      columns: {
        NAME: 'name',
        TYPE: 'type',
        TARGET: 'target',
        WAITING: 'waiting',
        DELIVERED: 'deliveredAt',
        FAILS: (row) => row.failure?.message,
      },
    },
  );
  noun.row(routes.test, 'test', 'Sends a test notification to every target.', {
    columns: { NAME: 'name', RESULT: (row) => row.failure ?? 'delivered' },
    fault: ({ items }) => {
      const failed = items.filter(({ failure }) => failure !== null).length;
      return failed === 0
        ? undefined
        : new CommandError('checks-failed', `${failed} of the targets cannot be reached`, {
            hint: 'run dke notification targets for the reason of each',
          });
    },
  });
};
