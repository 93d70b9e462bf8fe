// `dke token`: tokens with roles, and those that read metrics alone.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { Token } from '../fronts/contract/api/tokens.ts';
import {
  action,
  type Caller,
  everyItem,
  type Paging,
  paged,
  type SecretTarget,
  secretTarget,
  showSecret,
} from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.tokens;

interface Confirmed {
  readonly confirm?: string;
}
type GivenRole = Token['grants'][number]['role'];
type CreateOptions = SecretTarget & {
  readonly expires?: string;
  readonly kind: Token['kind'];
  readonly role?: readonly GivenRole[];
  readonly application?: string;
  readonly endpoint?: string;
};

/** The resource that is named, by its id. */
const scopeOf = async (
  resolve: Caller['resolve'],
  application: string | undefined,
  endpoint: string | undefined,
): Promise<Token['grants'][number]['scope']> => {
  if (application !== undefined && endpoint !== undefined)
    throw new CommandError('config', 'give --application or --endpoint, not both', {
      hint: 'make a token for each',
    });
  if (application !== undefined) return { kind: 'application', id: await resolve('TDE application', application) };
  return endpoint === undefined ? null : { kind: 'endpoint', id: await resolve('endpoint', endpoint) };
};

export const addToken = (program: Command): void => {
  const noun = program.command('token').summary('API tokens');

  secretTarget(noun.command('create <name>').description('Makes a token, shown this once.'))
    .option('--kind <kind>', 'api, or metrics: reads /metrics and nothing else', 'api')
    .option('--role <role...>', 'what it may do: dke token roles lists them')
    .option('--application <application>', 'the one that an application-owner has')
    .option('--endpoint <endpoint>', 'the one that an application-owner has')
    .option('--expires <time>', 'RFC 3339, for example 2027-01-31T00:00:00Z; never when absent')
    .action(
      action<CreateOptions>(async ({ call, output, resolve }, options, name) => {
        const { role = [], application, endpoint } = options;
        const scope = await scopeOf(resolve, application, endpoint);
        const body = {
          name,
          kind: options.kind,
          // The service refuses what does not go together, and says why.
          grants: role.map((each) => ({ role: each, scope: each === 'application-owner' ? scope : null })),
          ...(options.expires === undefined ? {} : { expiresAt: options.expires }),
        };
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
        ['KIND', (row) => row.kind],
        ['ROLES', (row) => row.grants.map(({ role }) => role).join(', ')],
        ['NAME', (row) => row.name],
        ['CREATED', (row) => row.createdAt],
        ['EXPIRES', (row) => row.expiresAt],
        ['LAST USED', (row) => row.lastUsedAt],
        ['REVOKED', (row) => row.revokedAt],
      ]);
    }),
  );

  noun
    .command('roles')
    .description('Lists the roles and what each may do.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.roles), [
          ['ROLE', (row) => row.role],
          ['WHAT FOR', (row) => row.description],
          ['PERMISSIONS', (row) => row.permissions.join(' ')],
        ]);
      }),
    );

  noun
    .command('whoami')
    .description('Shows whose token this is, and what it may do.')
    .action(
      action(async ({ call, output }) => {
        const session = await call(apiRoutes.session.get);
        if (output.format === 'json') return output.record(session);
        output.record({ id: session.id, name: session.name, roles: session.grants.map(({ role }) => role) });
        output.list({ items: session.permissions }, [
          ['MAY', (row) => row.permission],
          ['WITH', (row) => (row.scope === null ? 'everything' : `${row.scope.kind} ${row.scope.id}`)],
        ]);
      }),
    );

  noun
    .command('rotate-key')
    .description('Gives API tokens a new key. Tokens stay valid: each is stored under the new key at its next use.')
    .option('--compromised', 'end all tokens now, that of this command too')
    .option('--confirm <word>', 'end all tokens without a question: "end"')
    .action(
      action<Confirmed & { readonly compromised?: boolean }>(async ({ call, output }, options) => {
        const { compromised = false } = options;
        if (compromised) {
          const now = Date.now();
          const live = (await everyItem((query) => call(routes.list, { query }))).filter(
            ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > now),
          );
          await confirm(`All API tokens stop working at once: ${live.length}, with yours.`, 'end', options.confirm);
        }
        output.record(await call(routes.rotateKey, { body: { compromised } }));
      }),
    );

  noun
    .command('end-former-key')
    .description('Ends the former key of API tokens. Refused while tokens were not used since the rotation.')
    .option('--force', 'revoke these tokens')
    .option('--confirm <word>', 'revoke them without a question: "end"')
    .action(
      action<Confirmed & { readonly force?: boolean }>(async ({ call, output }, options) => {
        try {
          output.record(await call(routes.endFormerKey, { body: { force: false } }));
        } catch (error) {
          // Says how many tokens stop working, and names some.
          if (options.force !== true || !(error instanceof CommandError) || error.code !== 'conflict') throw error;
          await confirm(`${error.message}. They stop working at once.`, 'end', options.confirm);
          output.record(await call(routes.endFormerKey, { body: { force: true } }));
        }
      }),
    );

  noun
    .command('revoke <token>')
    .description('Revokes a token, by id or name. The last administrator stays: tokens that expire do not count.')
    .action(
      action(async ({ call, output, resolve }, _, token) => {
        output.record(await call(routes.revoke, { path: { id: await resolve('token', token) } }));
      }),
    );
};
