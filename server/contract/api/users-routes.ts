// People who sign in, as administrators manage them.

import { z } from '@hono/zod-openapi';
import { type FactorKind, invitationDeliveries, type UserState } from '../../domain/user.ts';
import { displayName, identifier, moment, orNull, pageOf, pageQuery, type RouteGroup } from './row.ts';
import { grantSchema, newGrantSchema } from './tokens-routes.ts';

export const factorSchema = z
  .strictObject({
    id: identifier,
    kind: z.enum(['totp', 'passkey', 'recovery-code'] satisfies FactorKind[]),
    name: z.string(),
    createdAt: moment,
    confirmedAt: moment
      .nullable()
      .openapi({ description: 'null: started, but not confirmed yet: it does not count as a factor' }),
    lastUsedAt: moment.nullable(),
  })
  .openapi('Factor');
export type Factor = z.output<typeof factorSchema>;

export const userSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier.nullable().openapi({ description: 'The tenant of the user; null: the platform.' }),
    name: z.string().openapi({ description: 'The name for signing in; unique, ignoring case.' }),
    displayName: z.string(),
    email: z.string().nullable(),
    grants: z.array(grantSchema).readonly(),
    state: z.enum(['active', 'disabled', 'deleted'] satisfies UserState[]),
    hasPassword: z.boolean(),
    mustChangePassword: z.boolean(),
    passwordChangedAt: moment.nullable(),
    subject: z.string().nullable().openapi({ description: 'The subject (`sub`) at the OpenID provider.' }),
    factors: z.array(factorSchema).readonly(),
    lockedUntil: moment
      .nullable()
      .openapi({ description: 'Too many failed attempts: passwords are refused until then.' }),
    invitedUntil: moment.nullable().openapi({ description: 'When the unused invitation expires.' }),
    createdAt: moment,
    lastSignInAt: moment.nullable(),
    integrity: z.enum(['ok', 'tampered']).openapi({ description: 'tampered: the row was changed from outside' }),
  })
  .openapi('User');
export type User = z.output<typeof userSchema>;

export const invitationSchema = z
  .strictObject({
    token: z.string().openapi({ description: 'Shown only once, and single-use.' }),
    expiresAt: moment,
    url: z.string().openapi({ description: 'The address at which the person opens it.' }),
  })
  .openapi('Invitation');

const invitedSchema = z
  .strictObject({
    user: userSchema,
    invitation: orNull(invitationSchema).openapi({
      description: 'null for users who sign in only with OpenID, and when it was sent by mail only',
    }),
    mailed: orNull(
      z.strictObject({
        to: z.string(),
        failure: z.string().nullable().openapi({ description: 'null: the mail server has accepted the mail' }),
      }),
    ).openapi({ description: 'null: not by mail' }),
  })
  .openapi('InvitedUser');
export type InvitedUser = z.output<typeof invitedSchema>;

export const endedSessionsSchema = z.strictObject({ ended: z.int() }).openapi('EndedSessions');

export const rightSchema = z.strictObject({
  permission: z.string(),
  scope: grantSchema.shape.scope,
  tenantId: identifier.nullable(),
});

const deliver = z
  .enum(invitationDeliveries)
  .optional()
  .openapi({
    default: 'show',
    description:
      "show: the answer has the invitation; mail: it is sent to the user's e-mail address, and the answer does not have it " +
      '(people.invitation_target in dke.toml); mail-and-show: both',
  });
const userName = z.string().min(1).max(64);
const email = z.string().max(254).nullable();
const subject = z.string().min(1).max(255).nullable();
const grants = z.array(newGrantSchema).min(1).max(20);

export const userRoutes = {
  create: {
    method: 'post',
    path: '/api/users',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Create a user',
    description: 'Returns an invitation, with which the person sets a password. A user with a subject gets none.',
    body: z
      .strictObject({
        name: userName,
        displayName: displayName.optional(),
        email: email.optional(),
        grants,
        subject: subject.optional(),
        deliver,
      })
      .openapi('NewUser'),
    answer: invitedSchema,
    creates: true,
    showsSecret: ['invitation.token', 'invitation.url'],
  },
  list: {
    method: 'get',
    path: '/api/users',
    needs: 'users:read',
    tenancy: 'both',
    summary: 'List users',
    query: pageQuery,
    answer: pageOf(userSchema),
  },
  get: {
    method: 'get',
    path: '/api/users/{id}',
    needs: 'users:read',
    tenancy: 'both',
    summary: 'Get a user',
    answer: userSchema,
  },
  update: {
    method: 'put',
    path: '/api/users/{id}',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Change a user',
    description: 'A change of roles ends their sessions. Users cannot change their own roles.',
    body: z
      .strictObject({
        displayName,
        email,
        grants,
        subject,
        mustChangePassword: z
          .boolean()
          .openapi({ description: 'The user must set a new password at the next sign-in.' }),
      })
      .openapi('UserChange'),
    answer: userSchema,
    changes: 'get',
  },
  enable: {
    method: 'post',
    path: '/api/users/{id}/enable',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Enable a user',
    answer: userSchema,
  },
  disable: {
    method: 'post',
    path: '/api/users/{id}/disable',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Disable a user',
    description: 'Their sessions end, and their tokens stop working.',
    answer: userSchema,
    changes: 'get',
  },
  unlock: {
    method: 'post',
    path: '/api/users/{id}/unlock',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Unlock a user',
    answer: userSchema,
  },
  resetPassword: {
    method: 'post',
    path: '/api/users/{id}/invitation',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Reset a password',
    description:
      'Removes the password, ends the sessions, and returns an invitation to set a new password. The API tokens of the user keep working unless revokeTokens is true.',
    body: z.strictObject({ revokeTokens: z.boolean().optional(), deliver }).openapi('PasswordReset'),
    answer: invitedSchema,
    creates: true,
    showsSecret: ['invitation.token', 'invitation.url'],
  },
  removeFactors: {
    method: 'delete',
    path: '/api/users/{id}/factors',
    needs: 'users:manage',
    tenancy: 'both',
    summary: "Remove a user's second factors",
    description: 'For a user who has lost them. The sessions end, and the next sign-in asks for a new factor.',
    answer: userSchema,
  },
  permissions: {
    method: 'get',
    path: '/api/users/{id}/permissions',
    needs: 'users:read',
    tenancy: 'both',
    summary: 'List the permissions of a user',
    answer: z
      .strictObject({ grants: z.array(grantSchema).readonly(), permissions: z.array(rightSchema).readonly() })
      .openapi('UserPermissions'),
  },
  endSessions: {
    method: 'delete',
    path: '/api/users/{id}/sessions',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'End all sessions of a user',
    answer: endedSessionsSchema,
  },
  delete: {
    method: 'delete',
    path: '/api/users/{id}',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Delete a user',
    description: 'This cannot be undone. The audit log keeps the name.',
    answer: userSchema,
    changes: 'get',
  },
} as const satisfies RouteGroup;
