// `dke token`: administrator tokens.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged, type SecretTarget, secretTarget, showSecret } from './caller.ts';

const routes = apiRoutes.tokens;

export const addToken = (program: Command): void => {
  const noun = program.command('token').summary('administrator tokens');

  secretTarget(noun.command('create <name>').description('Makes a token, shown this once.'))
    .option('--expires <time>', 'RFC 3339, for example 2027-01-31T00:00:00Z; never when absent')
    .action(
      action<SecretTarget & { readonly expires?: string }>(async ({ call, output }, options, name) => {
        const body = { name, ...(options.expires === undefined ? {} : { expiresAt: options.expires }) };
        await showSecret(output, options, async () => {
          const { record, token } = await call(routes.create, { body });
          return { shown: record, secret: { token }, file: `${token}\n` };
        });
      }),
    );

  paged(noun.command('list').description('Lists tokens; never their values.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(routes.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['NAME', (row) => row.name],
        ['CREATED', (row) => row.createdAt],
        ['EXPIRES', (row) => row.expiresAt],
        ['LAST USED', (row) => row.lastUsedAt],
        ['REVOKED', (row) => row.revokedAt],
      ]);
    }),
  );

  noun
    .command('revoke <token>')
    .description('Revokes a token, by id or name. The last live one stays.')
    .action(
      action(async ({ call, output, resolve }, _, token) => {
        output.record(await call(routes.revoke, { path: { id: await resolve('token', token) } }));
      }),
    );
};
