// People who sign in, as administrators manage them.

import { z } from '@hono/zod-openapi';
import type { FactorKind, UserState } from '../../../domain/user.ts';
import { displayName, identifier, moment, orNull, pageOf, pageQuery, type RouteGroup } from './row.ts';
import { grantSchema, newGrantSchema } from './tokens.ts';

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
    tenantId: identifier.nullable().openapi({ description: 'The tenant that they belong to; null: the platform.' }),
    name: z.string().openapi({ description: 'What they type to sign in; unique without regard to case.' }),
    displayName: z.string(),
    email: z.string().nullable(),
    grants: z.array(grantSchema).readonly(),
    state: z.enum(['active', 'disabled', 'deleted'] satisfies UserState[]),
    hasPassword: z.boolean(),
    mustChangePassword: z.boolean(),
    passwordChangedAt: moment.nullable(),
    subject: z.string().nullable().openapi({ description: 'Who they are at the OpenID provider.' }),
    factors: z.array(factorSchema).readonly(),
    lockedUntil: moment.nullable().openapi({ description: 'Too many failed attempts: no password before then.' }),
    invitedUntil: moment.nullable().openapi({ description: 'An invitation waits to be used.' }),
    createdAt: moment,
    lastSignInAt: moment.nullable(),
    integrity: z.enum(['ok', 'tampered']).openapi({ description: 'tampered: the row was changed from outside' }),
  })
  .openapi('User');
export type User = z.output<typeof userSchema>;

export const invitationSchema = z
  .strictObject({
    token: z.string().openapi({ description: 'Shown this once; good once.' }),
    expiresAt: moment,
    url: z.string().openapi({ description: 'Where the person opens it.' }),
  })
  .openapi('Invitation');

const invitedSchema = z
  .strictObject({
    user: userSchema,
    invitation: orNull(invitationSchema).openapi({ description: 'null for users who sign in by OpenID alone' }),
  })
  .openapi('InvitedUser');
export type InvitedUser = z.output<typeof invitedSchema>;

export const rightSchema = z.strictObject({
  permission: z.string(),
  scope: grantSchema.shape.scope,
  tenantId: identifier.nullable(),
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
    description: 'Answers an invitation, with which the person chooses a password; none for a user with a subject.',
    body: z
      .strictObject({
        name: userName,
        displayName: displayName.optional(),
        email: email.optional(),
        grants,
        subject: subject.optional(),
      })
      .openapi('NewUser'),
    answer: invitedSchema,
    creates: true,
    showsSecret: true,
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
    summary: 'Show a user',
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
        mustChangePassword: z.boolean().openapi({ description: 'At their next sign-in they choose a new one.' }),
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
      'Removes the password, ends the sessions, and answers an invitation to choose a new password. The API tokens of the user keep working unless revokeTokens is true.',
    body: z.strictObject({ revokeTokens: z.boolean().optional() }).openapi('PasswordReset'),
    answer: invitedSchema,
    creates: true,
    showsSecret: true,
  },
  removeFactors: {
    method: 'delete',
    path: '/api/users/{id}/factors',
    needs: 'users:manage',
    tenancy: 'both',
    summary: "Remove a user's second factors",
    description: 'For a user who has lost them. Sessions end; the next sign-in asks for a new factor.',
    answer: userSchema,
  },
  permissions: {
    method: 'get',
    path: '/api/users/{id}/permissions',
    needs: 'users:read',
    tenancy: 'both',
    summary: 'What a user may do',
    answer: z
      .strictObject({ grants: z.array(grantSchema).readonly(), permissions: z.array(rightSchema).readonly() })
      .openapi('UserPermissions'),
  },
  endSessions: {
    method: 'delete',
    path: '/api/users/{id}/sessions',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'End every session of a user',
    answer: z.strictObject({ ended: z.int() }).openapi('EndedSessions'),
  },
  delete: {
    method: 'delete',
    path: '/api/users/{id}',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'Delete a user',
    description: 'This cannot be undone; the audit log keeps naming them.',
    answer: userSchema,
    changes: 'get',
  },
} as const satisfies RouteGroup;
