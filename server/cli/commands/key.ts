// `dke key`: general-purpose keys, and what the keys console may do with TDE master keys.

import type { Command } from 'commander';
import { waysBack } from '../../base/way-back.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';
import { copyLines, describeCopies } from './key-copies.ts';

const routes = operations.keys;
const tagHelp = 'labels such as env=prod: a-z, 0-9 and - . _ : = /';

const filters = {
  '--vault <vault>': 'only keys in this vault',
  '--kind <kind>': 'general or master',
  '--state <state>': 'active, disabled, soft-deleted or destroyed',
  '--tag <tag>': 'only keys with this tag',
  '--created-after <time>': 'RFC 3339, inclusive',
  '--created-before <time>': 'RFC 3339, exclusive',
  '--used-after <time>': 'last used at this time or later',
  '--used-before <time>': 'last used before this time',
  '--never-used': 'only keys that were never used',
} as const;

export const addKey = (program: Command): void => {
  const noun = addNoun(program, 'key');

  noun.row(routes.create, 'create <name>', 'Creates an AES-256 key for encryption and decryption.', {
    options: { '--vault <vault>': { help: 'id or name of its vault', required: true }, '--tag <tag...>': tagHelp },
    as: { tag: 'tags' },
  });
  noun.act(
    'set <key>',
    'Changes the name and the tags of a key, and shows it. Values without an option are unchanged.',
    {
      '--name <name>': 'the new name; the name of a master key is its label, and cannot be changed',
      '--tag <tag...>': `these tags, which replace the current ones: ${tagHelp}`,
      '--no-tags': 'no tags',
    },
    async ({ change, output }, options, id = '') => {
      const edit = (before: { readonly name: string; readonly tags: readonly string[] }) => ({
        name: options.name ?? before.name,
        tags: [...(options.tag ?? (options.tags === false ? [] : before.tags))],
      });
      output.record(await change(routes.get, routes.change, { id }, edit));
    },
  );
  noun.row(
    routes.list,
    'list',
    'Lists keys, including destroyed ones: newest first, or with --used-after or --used-before, longest unused first.',
    {
      options: filters,
      columns: {
        ID: 'id',
        NAME: 'name',
        KIND: 'kind',
        STATE: 'effectiveState',
        VERSION: 'currentVersion',
        CREATED: 'createdAt',
        'LAST USED': 'lastUsedAt',
        TAGS: (row) => row.tags.join(' '),
      },
    },
  );
  noun.row(
    routes.export,
    'export',
    'Writes the inventory of all keys that you can see, of all tenants for platform roles; newest first.',
    { options: { '--format <format>': { help: 'ndjson or csv', default: 'ndjson' }, ...filters } },
  );
  noun.row(routes.get, 'show <key>', 'Shows a key, by id or name.');
  noun.row(routes.versions, 'versions <key>', "Lists a key's versions.", {
    columns: { VERSION: 'version', CREATED: 'createdAt', 'VAULT COPY': (row) => (row.vaultCopy ? 'yes' : 'no') },
  });
  noun.row(routes.use, 'use <key>', 'Shows who uses a key, and when it was last used.', {
    text: (output, { endpoints, application, copies, ...times }) => {
      output.record({
        ...times,
        application: application?.name ?? null,
        group: application?.groupName ?? null,
        copies: describeCopies(copies),
      });
      if (endpoints.length > 0)
        output.list(
          { items: endpoints },
          { ENDPOINT: 'name', STATE: 'state', 'USED THE KEY': 'lastUsedAt', 'LAST REQUEST': 'lastRequestAt' },
        );
      for (const line of copyLines(copies)) output.say(line);
    },
  });
  noun.row(routes.enable, 'enable <key>', 'Re-enables a key.');
  noun.row(routes.disable, 'disable <key>', 'Every use is refused until it is enabled again.');
  noun.row(routes.rotate, 'rotate <key>', 'Adds a version; older ones still decrypt what they encrypted.');
  noun.row(
    routes.delete,
    'delete <key>',
    `Soft-deletes a key, and clears its vault copy. A general-purpose key can no longer be used. ${waysBack.deleted.way} ` +
      `A TDE master key still serves its database. ${waysBack['deleted-master'].way}`,
    {
      confirm: [
        routes.get,
        ({ name, kind, lastUsedAt }) => {
          const follows =
            kind === 'master'
              ? `The vault copy is cleared. ${waysBack['deleted-master'].way}`
              : `The key will be unusable. ${waysBack.deleted.way}`;
          const evidence = lastUsedAt === null ? 'It was never used.' : `It was last used at ${lastUsedAt}.`;
          return `${follows} ${evidence} Key ${name}.`;
        },
      ],
      text: (output, { key, vaultCopyCleared }) => output.record({ ...key, vaultCopyCleared }),
    },
  );
};
