// `dke user`: people who sign in. Passwords are theirs alone: what an administrator hands over is an invitation.

import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { InvitedUser, User } from '../fronts/contract/api/users.ts';
import { action, type Caller, type Paging, paged, type SecretTarget, secretTarget, showSecret } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.users;
type Grant = User['grants'][number];

const roleOptions = (command: Command): Command =>
  command
    .option('--role <role...>', 'what they may do: dke token roles lists them')
    .option('--application <application>', 'the one that an application-owner has')
    .option('--endpoint <endpoint>', 'the one that an application-owner has')
    .option('--tenant <tenant>', 'within this tenant, by its id, rather than on the whole platform');
interface RoleOptions {
  readonly role?: readonly Grant['role'][];
  readonly application?: string;
  readonly endpoint?: string;
  readonly tenant?: string;
}

const readGrants = async (
  resolve: Caller['resolve'],
  { role = [], application, endpoint, tenant }: RoleOptions,
): Promise<(Omit<Grant, 'tenantId'> & { readonly tenantId?: string })[]> => {
  if (application !== undefined && endpoint !== undefined)
    throw new CommandError('config', 'give --application or --endpoint, not both');
  const scope: Grant['scope'] =
    application !== undefined
      ? { kind: 'application', id: await resolve('TDE application', application) }
      : endpoint !== undefined
        ? { kind: 'endpoint', id: await resolve('endpoint', endpoint) }
        : null;
  return role.map((each) => ({
    role: each,
    scope: each === 'application-owner' ? scope : null,
    ...(tenant === undefined ? {} : { tenantId: tenant }),
  }));
};

const shownUser = ({ grants, factors, ...user }: User) => ({
  ...user,
  roles: grants.map(({ role }) => role),
  factors: factors.map(({ kind, name }) => (kind === 'recovery-code' ? kind : `${kind} ${name}`)),
});

const tellInvitation = async (
  output: Caller['output'],
  options: SecretTarget,
  ask: () => Promise<InvitedUser>,
): Promise<void> =>
  showSecret(output, options, async () => {
    const { user, invitation } = await ask();
    const shown = output.format === 'json' ? { user } : shownUser(user);
    if (invitation === null) return { shown, secret: {}, file: '' };
    return {
      shown,
      secret: output.format === 'json' ? { invitation } : { invitation: invitation.url, until: invitation.expiresAt },
      file: `${invitation.url}\n`,
    };
  });

export const addUser = (program: Command): void => {
  const noun = program.command('user').summary('people who sign in');

  roleOptions(secretTarget(noun.command('create <name>')))
    .description('Makes a user. The invitation is shown this once: with it the person chooses a password.')
    .option('--display-name <name>', 'how people call them')
    .option('--email <address>', 'where they are reached')
    .option('--subject <subject>', 'who they are at the OpenID provider; they get no password then')
    .action(
      action<
        RoleOptions &
          SecretTarget & { readonly displayName?: string; readonly email?: string; readonly subject?: string }
      >(async ({ call, output, resolve }, options, name) => {
        const { displayName, email, subject } = options;
        const body = {
          name,
          grants: await readGrants(resolve, options),
          ...(displayName === undefined ? {} : { displayName }),
          ...(email === undefined ? {} : { email }),
          ...(subject === undefined ? {} : { subject }),
        };
        await tellInvitation(output, options, () => call(routes.create, { body }));
      }),
    );

  paged(noun.command('list').description('Lists users.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(routes.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['NAME', (row) => row.name],
        ['STATE', (row) => (row.lockedUntil === null ? row.state : `${row.state}, locked`)],
        ['ROLES', (row) => row.grants.map(({ role }) => role).join(', ')],
        ['FACTORS', (row) => [...new Set(row.factors.map(({ kind }) => kind))].join(', ')],
        ['LAST SIGN-IN', (row) => row.lastSignInAt],
      ]);
    }),
  );

  noun
    .command('show <user>')
    .description('Shows a user, by id or name.')
    .action(
      action(async ({ call, output, resolve }, _, user) => {
        const found = await call(routes.get, { path: { id: await resolve('user', user) } });
        output.record(output.format === 'json' ? found : shownUser(found));
      }),
    );

  roleOptions(noun.command('change <user>'))
    .description(
      'Changes what is given; the rest stays. New roles take the place of the old ones and end their sessions.',
    )
    .option('--display-name <name>', 'how people call them')
    .option('--email <address>', 'where they are reached; - for none')
    .option('--subject <subject>', 'who they are at the OpenID provider; - for none')
    .option('--require-new-password', 'at their next sign-in they choose one')
    .action(
      action<
        RoleOptions & {
          readonly displayName?: string;
          readonly email?: string;
          readonly subject?: string;
          readonly requireNewPassword?: boolean;
        }
      >(async ({ change, output, resolve }, options, user) => {
        const path = { id: await resolve('user', user) };
        const orNone = (given: string | undefined, kept: string | null): string | null =>
          given === undefined ? kept : given === '-' ? null : given;
        const changed = await change(routes.get, routes.update, path, async (before) => ({
          displayName: options.displayName ?? before.displayName,
          email: orNone(options.email, before.email),
          subject: orNone(options.subject, before.subject),
          mustChangePassword: options.requireNewPassword ?? before.mustChangePassword,
          grants: options.role === undefined ? [...before.grants] : await readGrants(resolve, options),
        }));
        output.record(output.format === 'json' ? changed : shownUser(changed));
      }),
    );

  for (const [verb, description] of [
    ['enable', 'Lets a disabled user sign in again.'],
    ['disable', 'Ends their sessions. They can no longer sign in, and their tokens stop working.'],
    ['unlock', 'Forgets the failed attempts for which a user is locked.'],
  ] as const)
    noun
      .command(`${verb} <user>`)
      .description(description)
      .action(
        action(async ({ call, output, resolve }, _, user) => {
          const changed = await call(routes[verb], { path: { id: await resolve('user', user) } });
          output.record(output.format === 'json' ? changed : shownUser(changed));
        }),
      );

  secretTarget(noun.command('reset-password <user>'))
    .option('--revoke-tokens', 'revoke their own API tokens, too')
    .description('Removes the password, ends their sessions, and shows an invitation to choose a new one.')
    .action(
      action<SecretTarget & { readonly revokeTokens?: true }>(async ({ call, output, resolve }, options, user) => {
        const id = await resolve('user', user);
        await tellInvitation(output, options, () =>
          call(routes.resetPassword, { path: { id }, body: { revokeTokens: options.revokeTokens === true } }),
        );
      }),
    );

  noun
    .command('remove-factors <user>')
    .description('Removes all second factors of a user who has lost them, and ends their sessions.')
    .action(
      action(async ({ call, output, resolve }, _, user) => {
        const changed = await call(routes.removeFactors, { path: { id: await resolve('user', user) } });
        output.record(output.format === 'json' ? changed : shownUser(changed));
      }),
    );

  noun
    .command('permissions <user>')
    .description('Shows what a user may do, and with what.')
    .action(
      action(async ({ call, output, resolve }, _, user) => {
        const answer = await call(routes.permissions, { path: { id: await resolve('user', user) } });
        if (output.format === 'json') return output.record(answer);
        output.list({ items: answer.permissions }, [
          ['MAY', (row) => row.permission],
          ['WITH', (row) => (row.scope === null ? 'everything' : `${row.scope.kind} ${row.scope.id}`)],
          ['IN', (row) => row.tenantId ?? 'every tenant'],
        ]);
      }),
    );

  noun
    .command('end-sessions <user>')
    .description('Ends every session of a user.')
    .action(
      action(async ({ call, output, resolve }, _, user) => {
        output.record(await call(routes.endSessions, { path: { id: await resolve('user', user) } }));
      }),
    );

  noun
    .command('delete <user>')
    .description('Deletes a user. This cannot be undone; the audit log keeps naming them.')
    .option('--confirm <name>', 'the name of the user, for scripts')
    .action(
      action<{ readonly confirm?: string }>(async ({ call, output, resolve }, options, user) => {
        const path = { id: await resolve('user', user) };
        const { name } = await call(routes.get, { path });
        await confirm(`${name} will be deleted, with what they sign in with.`, name, options.confirm);
        output.record(shownUser(await call(routes.delete, { path })));
      }),
    );
};
