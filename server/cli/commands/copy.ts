// `dke copy`: files that left the service with its keys.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.copies;
const columns = {
  ID: 'id',
  KIND: 'kind',
  AT: 'at',
  BY: 'actorName',
  'ROOT EPOCH': 'rootEpoch',
  DESTROYED: 'destroyedAt',
} as const;

export const addCopy = (program: Command): void => {
  const noun = addNoun(program, 'copy');
  noun.row(
    routes.list,
    'list',
    'Lists files that left the service with its keys: exported snapshots, and backups of the service and of the root key. Newest first.',
    {
      options: {
        '--of <tenant>': 'only this tenant',
        '--kind <kind>': 'exported-snapshot, service-backup or root-backup',
        '--left': 'only those that are not confirmed as destroyed',
      },
      columns,
    },
  );
  noun.row(routes.get, 'show <copy-id>', 'Shows a file that left the service.');
  noun.row(
    routes.confirmDestroyed,
    'confirm-destroyed <copy-id>',
    'Confirms that you destroyed the file and all copies of it. Destroyed keys that waited for it can become unrecoverable. Cannot be undone.',
    { options: { '--and-older': 'also all older files of this kind and tenant' }, columns },
  );
};
