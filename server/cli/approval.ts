// `dke approval`: what dual control holds back until others agree.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { addNoun } from './rows.ts';

const routes = apiRoutes.approvals;

export const addApproval = (program: Command): void => {
  const noun = addNoun(program, 'approval', 'what waits until others agree (dual control)');
  const comment = { options: { '--comment <text>': 'why; the audit log keeps it' } } as const;

  noun.row(routes.list, 'list', 'Lists requests for approval, newest first.', {
    options: {
      '--state <state>': 'pending, approved, carried-out, refused, withdrawn, expired or outdated',
      '--subject-id <id>': 'about one key, vault or application',
    },
    columns: {
      ID: 'id',
      OPERATION: 'operation',
      ABOUT: (row) => row.subject.name,
      BY: (row) => row.requestedBy.name,
      STATE: 'state',
      MISSING: 'missing',
      EXPIRES: 'expiresAt',
    },
  });
  noun.row(
    routes.get,
    'show <approval-id>',
    'Shows a request: what would be done, what it would mean, and who has agreed.',
  );
  noun.row(
    routes.approve,
    'approve <approval-id>',
    'Agrees to a request. The last agreement that was missing carries the operation out.',
    comment,
  );
  noun.row(routes.refuse, 'refuse <approval-id>', 'Refuses a request, and so ends it.', comment);
  noun.row(routes.withdraw, 'withdraw <approval-id>', 'Withdraws a request of your own.');
};
