// `dke session`: who is signed in at the console.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';
import { confirm } from '../terminal/output.ts';

const routes = operations.sessions;

export const addSession = (program: Command): void => {
  const noun = addNoun(program, 'session');
  noun.row(routes.list, 'list', 'Lists sessions, newest first.', {
    options: { '--user <user>': 'of this user only, by id or name' },
    columns: {
      ID: 'id',
      WHO: (row) => `${row.holder.kind} ${row.holder.name}`,
      BY: (row) => `${row.method}${row.secondFactor ? ', second factor' : ''}`,
      FROM: 'peer',
      STARTED: 'createdAt',
      'LAST USED': 'usedAt',
      ENDS: 'expiresAt',
    },
  });
  noun.row(routes.end, 'end <id>', 'Ends a session immediately.');
  noun.act(
    'rotate-key',
    'Rotates the key of sessions. All sessions end; API tokens, access_guids and credentials stay valid.',
    { '--confirm <word>': 'skip the question: "end"' },
    async ({ call, every, output }, options) => {
      const { length } = await every(routes.list);
      await confirm(`All sessions end immediately: ${length}. Everyone must sign in again.`, 'end', options.confirm);
      output.record(await call(routes.rotateKey));
    },
  );
};
