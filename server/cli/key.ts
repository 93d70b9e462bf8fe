// `dke key`: general-purpose keys, and what the keys console may do with TDE master keys.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged } from './caller.ts';
import { exportTo } from './files.ts';
import { copyLines, describeCopies } from './key-copies.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.keys;
const tagHelp = 'words such as env=prod: a-z, 0-9 and - . _ : = /';

interface ListOptions {
  readonly vault?: string;
  readonly kind?: string;
  readonly state?: string;
  readonly tag?: string;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly usedAfter?: string;
  readonly usedBefore?: string;
  readonly neverUsed?: boolean;
}

export const addKey = (program: Command): void => {
  const noun = program.command('key').summary('keys');

  noun
    .command('create <name>')
    .description('Makes an AES-256 key for encryption and decryption.')
    .requiredOption('--vault <vault>', 'id or name of its vault')
    .option('--tag <tag...>', tagHelp)
    .action(
      action<{ readonly vault: string; readonly tag?: readonly string[] }>(
        async ({ call, output, resolve }, { vault, tag: tags }, name) => {
          const vaultId = await resolve('vault', vault);
          output.record(
            await call(routes.create, { body: { name, vaultId, ...(tags === undefined ? {} : { tags }) } }),
          );
        },
      ),
    );

  noun
    .command('set <key>')
    .description('Changes the name and the tags of a key, and shows it. What no option names stays.')
    .option('--name <name>', 'another name; that of a master key is its label, and stays')
    .option('--tag <tag...>', `these tags instead of those it has: ${tagHelp}`)
    .option('--no-tags', 'no tags')
    .action(
      action<{ readonly name?: string; readonly tag?: readonly string[]; readonly tags: boolean }>(
        async ({ change, output, resolve }, options, key) => {
          const path = { id: await resolve('key', key) };
          const edit = (before: { readonly name: string; readonly tags: readonly string[] }) => ({
            name: options.name ?? before.name,
            tags: [...(options.tag ?? (options.tags ? before.tags : []))],
          });
          output.record(await change(routes.get, routes.change, path, edit));
        },
      ),
    );

  paged(
    noun
      .command('list')
      .description(
        'Lists keys, destroyed ones too: newest first, with --used-after or --used-before longest unused first.',
      ),
  )
    .option('--vault <vault>', 'of this vault only')
    .option('--kind <kind>', 'general or master')
    .option('--state <state>', 'active, disabled, soft-deleted or destroyed')
    .option('--tag <tag>', 'that have this tag')
    .option('--created-after <time>', 'RFC 3339, inclusive')
    .option('--created-before <time>', 'RFC 3339, exclusive')
    .option('--used-after <time>', 'last used at this time or later')
    .option('--used-before <time>', 'last used before this time')
    .option('--never-used', 'that nothing was ever done with')
    .action(
      action<Paging & ListOptions>(async ({ call, output, resolve }, { vault, neverUsed, ...query }) => {
        const vaultId = vault === undefined ? undefined : await resolve('vault', vault);
        output.list(
          await call(routes.list, {
            query: { ...query, vaultId, ...(neverUsed === true ? { neverUsed: 'true' } : {}) },
          }),
          [
            ['ID', (row) => row.id],
            ['NAME', (row) => row.name],
            ['KIND', (row) => row.kind],
            ['STATE', (row) => row.state],
            ['VERSION', (row) => row.currentVersion],
            ['CREATED', (row) => row.createdAt],
            ['LAST USED', (row) => row.lastUsedAt],
            ['TAGS', (row) => row.tags.join(' ')],
          ],
        );
      }),
    );

  noun
    .command('export')
    .description('Writes the inventory of all keys that you can see, of all tenants for platform roles; newest first.')
    .option('--format <format>', 'ndjson or csv', 'ndjson')
    .option('--vault <vault>', 'of this vault only')
    .option('--kind <kind>', 'general or master')
    .option('--state <state>', 'active, disabled, soft-deleted or destroyed')
    .option('--tag <tag>', 'that have this tag')
    .option('--created-after <time>', 'RFC 3339, inclusive')
    .option('--created-before <time>', 'RFC 3339, exclusive')
    .option('--out <file>', 'into this new file')
    .action(
      action<
        Omit<ListOptions, 'usedAfter' | 'usedBefore' | 'neverUsed'> & { readonly format: string; readonly out?: string }
      >(async ({ stream, resolve }, { vault, out, ...query }) => {
        const vaultId = vault === undefined ? undefined : await resolve('vault', vault);
        await exportTo(out, (into) => stream(routes.export, { query: { ...query, vaultId } }, into));
      }),
    );

  noun
    .command('get <key>')
    .description('Shows a key, by id or name.')
    .action(
      action(async ({ call, output, resolve }, _, key) => {
        output.record(await call(routes.get, { path: { id: await resolve('key', key) } }));
      }),
    );

  noun
    .command('versions <key>')
    .description("Lists a key's versions.")
    .action(
      action(async ({ call, output, resolve }, _, key) => {
        output.list(await call(routes.versions, { path: { id: await resolve('key', key) } }), [
          ['VERSION', (row) => row.version],
          ['CREATED', (row) => row.createdAt],
          ['VAULT COPY', (row) => (row.vaultCopy ? 'yes' : 'no')],
        ]);
      }),
    );

  noun
    .command('use <key>')
    .description('Shows who uses a key, and when it was last used.')
    .action(
      action(async ({ call, output, resolve }, _, key) => {
        const use = await call(routes.use, { path: { id: await resolve('key', key) } });
        if (output.format === 'json') return output.record(use);
        const { endpoints, application, copies, ...times } = use;
        output.record({
          ...times,
          application: application?.name ?? null,
          group: application?.groupName ?? null,
          copies: describeCopies(copies),
        });
        if (endpoints.length > 0)
          output.list({ items: endpoints }, [
            ['ENDPOINT', (row) => row.name],
            ['STATE', (row) => row.state],
            ['USED THE KEY', (row) => row.lastUsedAt],
            ['LAST REQUEST', (row) => row.lastRequestAt],
          ]);
        for (const line of copyLines(copies)) output.say(line);
      }),
    );

  for (const [verb, description] of [
    ['enable', 'Takes a key into use again.'],
    ['disable', 'Every use is refused until it is enabled again.'],
    ['rotate', 'Adds a version; older ones go on opening what they sealed.'],
  ] as const)
    noun
      .command(`${verb} <key>`)
      .description(description)
      .action(
        action(async ({ call, output, resolve }, _, key) => {
          output.record(await call(routes[verb], { path: { id: await resolve('key', key) } }));
        }),
      );

  noun
    .command('delete <key>')
    .description(
      'Soft-deletes a key. A general-purpose key is out of use. A TDE master key goes on serving its database: its ' +
        'vault copy is cleared, the next call of the database imports it again from the sealed copy.',
    )
    .option('--confirm <name>', 'the name of the key, to go on without a question')
    .option('--dry-run', 'show what it would mean and who must agree, change nothing')
    .action(
      action<{ readonly confirm?: string; readonly dryRun?: boolean }>(
        async ({ call, output, resolve }, options, key) => {
          const path = { id: await resolve('key', key) };
          if (options.dryRun === true)
            return output.record((await call(routes.delete, { path, query: { dryRun: 'true' } })).plan ?? {});
          const { name, kind, lastUsedAt } = await call(routes.get, { path });
          const follows =
            kind === 'master'
              ? 'The vault copy is cleared; its database brings it back with its next call.'
              : 'The key will be unusable. This cannot be undone.';
          const evidence = lastUsedAt === null ? 'It was never used.' : `It was last used at ${lastUsedAt}.`;
          await confirm(`${follows} ${evidence} Key ${name}.`, name, options.confirm);
          const answer = await call(routes.delete, { path });
          output.record(
            output.format === 'json' ? answer : { ...answer.key, vaultCopyCleared: answer.vaultCopyCleared },
          );
        },
      ),
    );
};
