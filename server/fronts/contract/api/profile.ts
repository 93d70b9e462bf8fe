// What people who are signed in do with themselves. A token has no profile.

import { z } from '@hono/zod-openapi';
import { displayName, identifier, pageOf, pageQuery, type RouteGroup } from './row.ts';
import { passkeyAnswer, passkeyQuestion, passwordText, sessionSchema } from './session.ts';
import { openSessionSchema } from './sessions.ts';
import { issuedTokenSchema, newGrantSchema } from './tokens.ts';
import { userSchema } from './users.ts';

export const profileRoutes = {
  get: {
    method: 'get',
    path: '/api/profile',
    needs: 'signed-in',
    unfinished: ['second-factor', 'new-password', 'enrolment'],
    summary: 'Who I am',
    answer: userSchema,
  },
  changePassword: {
    method: 'post',
    path: '/api/profile/password',
    needs: 'signed-in',
    unfinished: ['new-password'],
    summary: 'Choose a new password',
    description: 'Every other session of the user ends, and this one gets a new cookie.',
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
    summary: 'Begin a one-time password',
    description: 'Shows its secret once. It counts when it is confirmed by its first code.',
    body: z.strictObject({ name: displayName }).openapi('NewTotp'),
    answer: z
      .strictObject({
        id: identifier,
        secret: z.string().openapi({ description: 'Base32; to be typed where nothing can be scanned.' }),
        uri: z.string().openapi({ description: 'otpauth: what the QR code holds.' }),
      })
      .openapi('BegunTotp'),
    creates: true,
    showsSecret: true,
  },
  confirmTotp: {
    method: 'post',
    path: '/api/profile/totp/{id}/confirm',
    needs: 'signed-in',
    unfinished: ['enrolment'],
    summary: 'Confirm a one-time password by its first code',
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
    summary: 'Begin a passkey',
    answer: passkeyQuestion,
  },
  addPasskey: {
    method: 'post',
    path: '/api/profile/passkeys',
    needs: 'signed-in',
    unfinished: ['enrolment'],
    summary: 'Keep a passkey that an authenticator has made',
    body: z.strictObject({ name: displayName, answer: passkeyAnswer }).openapi('NewPasskey'),
    answer: sessionSchema,
    setsSession: true,
  },
  makeRecoveryCodes: {
    method: 'post',
    path: '/api/profile/recovery-codes',
    needs: 'signed-in',
    summary: 'Make recovery codes',
    description: 'Each is valid once, in the place of a second factor. Earlier codes stop working.',
    answer: z.strictObject({ codes: z.array(z.string()).readonly() }).openapi('RecoveryCodes'),
    creates: true,
    showsSecret: true,
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
    summary: 'Make a token of my own',
    description:
      'It does what these of my roles do (all when absent), as long as I have them, and I am who acts by it.',
    body: z
      .strictObject({
        name: displayName,
        expiresAt: z.iso.datetime({ offset: true }),
        grants: z.array(newGrantSchema).min(1).max(20).optional(),
      })
      .openapi('NewOwnToken'),
    answer: issuedTokenSchema,
    creates: true,
    showsSecret: true,
  },
  sessions: {
    method: 'get',
    path: '/api/profile/sessions',
    needs: 'signed-in',
    summary: 'My sessions',
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
} as const satisfies RouteGroup;
