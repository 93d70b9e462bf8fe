// `dke approval`: what dual control holds back until others agree.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.approvals;

export const addApproval = (program: Command): void => {
  const noun = addNoun(program, 'approval');
  const comment = { options: { '--comment <text>': 'the reason, for the audit log' } } as const;

  noun.row(routes.list, 'list', 'Lists approval requests, newest first.', {
    options: {
      '--state <state>': 'pending, approved, completed, rejected, withdrawn, expired or outdated',
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
  noun.row(routes.get, 'show <approval-id>', 'Shows a request: the operation, its effects, and who has approved it.');
  noun.row(
    routes.approve,
    'approve <approval-id>',
    'Approves a request. The last missing approval also starts the operation.',
    comment,
  );
  noun.row(routes.reject, 'reject <approval-id>', 'Rejects a request, which ends it.', comment);
  noun.row(routes.withdraw, 'withdraw <approval-id>', 'Withdraws your own request.');
};
