// `dke token`: tokens of administrators, and those that read metrics alone.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { Token } from '../fronts/contract/api/tokens.ts';
import { action, type Paging, paged, type SecretTarget, secretTarget, showSecret } from './caller.ts';

const routes = apiRoutes.tokens;

export const addToken = (program: Command): void => {
  const noun = program.command('token').summary('API tokens');

  secretTarget(noun.command('create <name>').description('Makes a token, shown this once.'))
    .option('--kind <kind>', 'administrator, or metrics: reads /metrics and nothing else', 'administrator')
    .option('--expires <time>', 'RFC 3339, for example 2027-01-31T00:00:00Z; never when absent')
    .action(
      action<SecretTarget & { readonly expires?: string; readonly kind: Token['kind'] }>(
        async ({ call, output }, options, name) => {
          const body = {
            name,
            kind: options.kind,
            ...(options.expires === undefined ? {} : { expiresAt: options.expires }),
          };
          await showSecret(output, options, async () => {
            const { record, token } = await call(routes.create, { body });
            return { shown: record, secret: { token }, file: `${token}\n` };
          });
        },
      ),
    );

  paged(noun.command('list').description('Lists tokens; never their values.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(routes.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['KIND', (row) => row.kind],
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
    .description('Revokes a token, by id or name. The last live one of an administrator stays.')
    .action(
      action(async ({ call, output, resolve }, _, token) => {
        output.record(await call(routes.revoke, { path: { id: await resolve('token', token) } }));
      }),
    );
};
