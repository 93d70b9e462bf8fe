// What people who are signed in do with themselves. A token has no profile.

import { z } from '@hono/zod-openapi';
import { displayName, identifier, pageOf, pageQuery, type RouteGroup } from './row.ts';
import { openSessionSchema } from './session-routes.ts';
import { passkeyAnswer, passkeyQuestion, passwordText, sessionSchema } from './sign-in-routes.ts';
import { issuedTokenSchema, newGrantSchema, tokenSchema } from './tokens-routes.ts';
import { endedSessionsSchema, userSchema } from './users-routes.ts';

export const profileRoutes = {
  get: {
    method: 'get',
    path: '/api/profile',
    needs: 'signed-in',
    unfinished: ['second-factor', 'new-password', 'enrolment'],
    summary: 'Get my profile',
    answer: userSchema,
  },
  changePassword: {
    method: 'post',
    path: '/api/profile/password',
    needs: 'signed-in',
    unfinished: ['new-password'],
    summary: 'Change my password',
    description: 'All other sessions of the user end, and this one gets a new cookie.',
    body: z.strictObject({ current: passwordText.optional(), password: passwordText }).openapi('PasswordChange'),
    secrets: ['current', 'password'],
    answer: sessionSchema,
    setsSession: true,
  },
  beginTotp: {
    method: 'post',
    path: '/api/profile/totp',
    needs: 'signed-in',
    unfinished: ['enrolment'],
    summary: 'Start setting up a one-time password',
    description: 'The secret is shown only once. It becomes a factor when its first code confirms it.',
    body: z.strictObject({ name: displayName }).openapi('NewTotp'),
    answer: z
      .strictObject({
        id: identifier,
        secret: z.string().openapi({ description: 'Base32, for typing where a QR code cannot be scanned.' }),
        uri: z.string().openapi({ description: 'otpauth: the content of the QR code.' }),
      })
      .openapi('PendingTotp'),
    creates: true,
    showsSecret: ['secret', 'uri'],
  },
  confirmTotp: {
    method: 'post',
    path: '/api/profile/totp/{id}/confirm',
    needs: 'signed-in',
    unfinished: ['enrolment'],
    summary: 'Confirm a one-time password with its first code',
    body: z.strictObject({ code: passwordText }).openapi('TotpConfirmation'),
    secrets: ['code'],
    answer: sessionSchema,
    setsSession: true,
  },
  beginPasskey: {
    method: 'post',
    path: '/api/profile/passkeys/options',
    needs: 'signed-in',
    unfinished: ['enrolment'],
    summary: 'Start setting up a passkey',
    answer: passkeyQuestion,
  },
  addPasskey: {
    method: 'post',
    path: '/api/profile/passkeys',
    needs: 'signed-in',
    unfinished: ['enrolment'],
    summary: 'Save a passkey',
    body: z.strictObject({ name: displayName, answer: passkeyAnswer }).openapi('NewPasskey'),
    answer: sessionSchema,
    setsSession: true,
  },
  makeRecoveryCodes: {
    method: 'post',
    path: '/api/profile/recovery-codes',
    needs: 'signed-in',
    summary: 'Create recovery codes',
    description: 'Each code is valid once, in place of a second factor. Earlier codes stop working.',
    answer: z.strictObject({ codes: z.array(z.string()).readonly() }).openapi('RecoveryCodes'),
    creates: true,
    showsSecret: ['codes'],
  },
  removeFactor: {
    method: 'delete',
    path: '/api/profile/factors/{id}',
    needs: 'signed-in',
    summary: 'Remove one of my second factors',
    answer: userSchema,
  },
  createToken: {
    method: 'post',
    path: '/api/profile/tokens',
    needs: 'signed-in',
    summary: 'Create a token for myself',
    description:
      'It has these of my roles (all when absent), as long as I have them. The audit log names me as the actor.',
    body: z
      .strictObject({
        name: displayName,
        expiresAt: z.iso.datetime({ offset: true }),
        grants: z.array(newGrantSchema).min(1).max(20).optional(),
      })
      .openapi('NewOwnToken'),
    answer: issuedTokenSchema,
    creates: true,
    showsSecret: ['token'],
  },
  tokens: {
    method: 'get',
    path: '/api/profile/tokens',
    needs: 'signed-in',
    summary: 'List my tokens',
    description: 'Those that you created for yourself, also those that are expired or revoked.',
    query: pageQuery,
    answer: pageOf(tokenSchema),
  },
  revokeToken: {
    method: 'delete',
    path: '/api/profile/tokens/{id}',
    needs: 'signed-in',
    summary: 'Revoke one of my tokens',
    answer: tokenSchema,
  },
  sessions: {
    method: 'get',
    path: '/api/profile/sessions',
    needs: 'signed-in',
    summary: 'List my sessions',
    query: pageQuery,
    answer: pageOf(openSessionSchema),
  },
  endSession: {
    method: 'delete',
    path: '/api/profile/sessions/{id}',
    needs: 'signed-in',
    summary: 'End one of my sessions',
    answer: openSessionSchema,
  },
  endOtherSessions: {
    method: 'delete',
    path: '/api/profile/sessions',
    needs: 'signed-in',
    summary: 'End all my other sessions',
    description: 'The session of this request stays.',
    answer: endedSessionsSchema,
  },
} as const satisfies RouteGroup;
