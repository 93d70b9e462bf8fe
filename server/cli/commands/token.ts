// `dke token`: tokens with roles, and those that read metrics alone.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { Token } from '../../contract/api/tokens-routes.ts';
import { addNoun } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { confirm } from '../terminal/output.ts';

const routes = operations.tokens;
type Grant = Token['grants'][number];

const scopeOf = (application: string | undefined, endpoint: string | undefined): Grant['scope'] => {
  if (application !== undefined && endpoint !== undefined)
    throw new CommandError('config', 'use --application or --endpoint, not both', {
      hint: 'create a token for each',
    });
  if (application !== undefined) return { kind: 'application', id: application };
  return endpoint === undefined ? null : { kind: 'endpoint', id: endpoint };
};

export const addToken = (program: Command): void => {
  const noun = addNoun(program, 'token');

  noun.row(routes.create, 'create <name>', 'Creates a token, shown only once.', {
    options: {
      '--kind <kind>': { help: 'api, or metrics: reads /metrics and nothing else', default: 'api' },
      '--role <role...>': 'role of the token; dke token roles lists all roles',
      '--application <application>': 'for the role application-owner',
      '--endpoint <endpoint>': 'for the role application-owner',
      '--expires <time>': 'RFC 3339, for example 2027-01-31T00:00:00Z; default: never',
    },
    as: { expires: 'expiresAt' },
    also: (_, { role = [], application, endpoint }) => {
      const scope = scopeOf(application, endpoint);
      // The service refuses what does not go together, and says why.
      const grants = role.map((each) => ({
        role: each as Grant['role'],
        scope: each === 'application-owner' ? scope : null,
      }));
      return { body: { grants } };
    },
    secret: ({ record, token }) => ({ shown: record, secret: { token }, file: `${token}\n` }),
  });
  noun.row(routes.list, 'list', 'Lists tokens; never their values.', {
    options: { '--user <user>': 'that this user created for themselves, by id or name' },
    columns: {
      ID: 'id',
      KIND: 'kind',
      ROLES: (row) => row.grants.map(({ role }) => role).join(', '),
      NAME: 'name',
      CREATED: 'createdAt',
      EXPIRES: 'expiresAt',
      'LAST USED': 'lastUsedAt',
      REVOKED: 'revokedAt',
    },
  });
  noun.row(routes.roles, 'roles', 'Lists the roles and their permissions.', {
    columns: { ROLE: 'role', 'WHAT FOR': 'description', PERMISSIONS: (row) => row.permissions.join(' ') },
  });
  noun.row(operations.session.get, 'whoami', 'Shows the owner and the permissions of this token.', {
    text: (output, { id, name, grants, permissions }) => {
      output.record({ id, name, roles: grants.map(({ role }) => role) });
      output.list(
        { items: permissions },
        {
          MAY: 'permission',
          WITH: (row) => (row.scope === null ? 'everything' : `${row.scope.kind} ${row.scope.id}`),
        },
      );
    },
  });
  noun.act(
    'rotate-key',
    'Rotates the key of API tokens. Tokens stay valid: each is stored under the new key at its next use.',
    {
      '--compromised': 'end all tokens now, including the token of this command',
      '--confirm <word>': 'skip the question: "end"',
    },
    async ({ call, every, output }, { compromised = false, confirm: word }) => {
      if (compromised) {
        const now = Date.now();
        const live = (await every(routes.list)).filter(
          ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > now),
        );
        await confirm(`All API tokens stop working immediately: ${live.length}, including yours.`, 'end', word);
      }
      output.record(await call(routes.rotateKey, { body: { compromised } }));
    },
  );
  noun.act(
    'end-former-key',
    'Ends the former key of API tokens. Refused while some tokens have not been used since the rotation.',
    { '--force': 'revoke these tokens', '--confirm <word>': 'skip the question: "end"' },
    async ({ call, output }, { force, confirm: word }) => {
      try {
        output.record(await call(routes.endFormerKey, { body: { force: false } }));
      } catch (error) {
        // Says how many tokens stop working, and names some.
        if (force !== true || !(error instanceof CommandError) || error.code !== 'conflict') throw error;
        await confirm(`${error.message}. They stop working immediately.`, 'end', word);
        output.record(await call(routes.endFormerKey, { body: { force: true } }));
      }
    },
  );
  noun.row(
    routes.revoke,
    'revoke <token>',
    'Revokes a token, by id or name. The last administrator token that never expires cannot be revoked.',
  );
};
