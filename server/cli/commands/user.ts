// `dke user`: people who sign in. Passwords are theirs alone: what an administrator hands over is
// an invitation.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { InvitedUser, User } from '../../contract/api/users-routes.ts';
import type { Caller, SecretAnswer } from '../service/caller.ts';
import { addNoun, type Given } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import type { Output } from '../terminal/output.ts';

const routes = operations.users;
type Grant = User['grants'][number];

const roleFlags = {
  '--role <role...>': 'role of the user; dke token roles lists all roles',
  '--application <application>': 'for the role application-owner',
  '--endpoint <endpoint>': 'for the role application-owner',
} as const;

const delivery = {
  '--deliver <way>': 'the invitation: show it, mail it to the user (then it is not shown), or mail-and-show',
} as const;

const grantsOf = ({ role = [], application, endpoint }: Given<typeof roleFlags>) => {
  if (application !== undefined && endpoint !== undefined)
    throw new CommandError('config', 'use --application or --endpoint, not both');
  const scope: Grant['scope'] =
    application !== undefined
      ? { kind: 'application', id: application }
      : endpoint !== undefined
        ? { kind: 'endpoint', id: endpoint }
        : null;
  return role.map((each) => ({
    // The service refuses what is none, and says so.
    role: each as Grant['role'],
    scope: each === 'application-owner' ? scope : null,
  }));
};

const shownUser = ({ grants, factors, ...user }: User) => ({
  ...user,
  roles: grants.map(({ role }) => role),
  factors: factors.map(({ kind, name }) => (kind === 'recovery-code' ? kind : `${kind} ${name}`)),
});
const show = { text: (output: Output, user: User) => output.record(shownUser(user)) };

const isMailed = (deliver: string | undefined): boolean => deliver === 'mail';

const invitation = (
  { user, invitation, mailed }: InvitedUser,
  _: object,
  { output: { raw } }: Caller,
): SecretAnswer => {
  const sent = mailed === null ? {} : { mailed: mailed.failure === null ? mailed.to : `failed: ${mailed.failure}` };
  const shown = raw ? { user, mailed } : { ...shownUser(user), ...sent };
  if (invitation === null) return { shown, secret: {}, file: '' };
  return {
    shown,
    secret: raw ? { invitation } : { invitation: invitation.url, until: invitation.expiresAt },
    file: `${invitation.url}\n`,
  };
};

export const addUser = (program: Command): void => {
  const noun = addNoun(program, 'user');

  noun.row(
    routes.create,
    'create <name>',
    'Creates a user. The invitation, with which the user chooses a password, is shown only once.',
    {
      options: {
        ...roleFlags,
        '--display-name <name>': 'the full name, shown in lists and in the audit log',
        '--email <address>': 'e-mail address',
        '--subject <subject>': 'subject at the OpenID provider; the user has no password then',
        ...delivery,
      },
      also: (_, options) => ({ body: { grants: grantsOf(options) } }),
      secret: invitation,
      noSecret: ({ deliver, subject }) => isMailed(deliver) || subject !== undefined,
    },
  );
  noun.row(routes.list, 'list', 'Lists users.', {
    columns: {
      ID: 'id',
      NAME: 'name',
      STATE: (row) => (row.lockedUntil === null ? row.state : `${row.state}, locked`),
      ROLES: (row) => row.grants.map(({ role }) => role).join(', '),
      FACTORS: (row) => [...new Set(row.factors.map(({ kind }) => kind))].join(', '),
      'LAST SIGN-IN': 'lastSignInAt',
    },
  });
  noun.row(routes.get, 'show <user>', 'Shows a user, by id or name.', show);
  noun.act(
    'change <user>',
    'Changes the given values; all others are unchanged. New roles replace the old ones and end the sessions of the user.',
    {
      ...roleFlags,
      '--display-name <name>': 'the full name, shown in lists and in the audit log',
      '--email <address>': 'e-mail address; - for none',
      '--subject <subject>': 'subject at the OpenID provider; - for none',
      '--require-new-password': 'the user must choose a new password at the next sign-in',
    },
    async ({ change, output }, options, id = '') => {
      const orNone = (given: string | undefined, kept: string | null): string | null =>
        given === undefined ? kept : given === '-' ? null : given;
      const changed = await change(routes.get, routes.update, { id }, (before) => ({
        displayName: options.displayName ?? before.displayName,
        email: orNone(options.email, before.email),
        subject: orNone(options.subject, before.subject),
        mustChangePassword: options.requireNewPassword ?? before.mustChangePassword,
        grants: options.role === undefined ? [...before.grants] : grantsOf(options),
      }));
      output.record(output.raw ? changed : shownUser(changed));
    },
  );
  noun.row(routes.enable, 'enable <user>', 'Lets a disabled user sign in again.', show);
  noun.row(
    routes.disable,
    'disable <user>',
    'Ends their sessions. They can no longer sign in, and their tokens stop working.',
    show,
  );
  noun.row(routes.unlock, 'unlock <user>', 'Clears the failed attempts for which a user is locked.', show);
  noun.row(
    routes.resetPassword,
    'reset-password <user>',
    'Removes the password, ends their sessions, and shows an invitation to choose a new one.',
    {
      options: { '--revoke-tokens': 'also revoke the API tokens of the user', ...delivery },
      secret: invitation,
      noSecret: ({ deliver }) => isMailed(deliver),
    },
  );
  noun.row(
    routes.removeFactors,
    'remove-factors <user>',
    'Removes all second factors of a user who has lost them, and ends their sessions.',
    show,
  );
  noun.row(routes.permissions, 'permissions <user>', 'Shows the permissions of a user and their scope.', {
    text: (output, { permissions }) =>
      output.list(
        { items: permissions },
        {
          MAY: 'permission',
          WITH: (row) => (row.scope === null ? 'everything' : `${row.scope.kind} ${row.scope.id}`),
          IN: (row) => row.tenantId ?? 'every tenant',
        },
      ),
  });
  noun.row(routes.endSessions, 'end-sessions <user>', 'Ends every session of a user.');
  noun.row(routes.delete, 'delete <user>', 'Deletes a user. This cannot be undone; the audit log keeps the name.', {
    confirm: [routes.get, ({ name }) => `${name} will be deleted, with password and second factors.`],
    ...show,
  });
};
