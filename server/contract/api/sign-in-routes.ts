// The session of the console's pages: a user's sign-in, or an administrator token, exchanged for a
// cookie that no script can read.

import { z } from '@hono/zod-openapi';
import type { SignInStep } from '../../domain/sign-in.ts';
import { identifier, moment, type RouteGroup } from './row.ts';
import { grantSchema } from './tokens-routes.ts';

/** The cookie of a person who has signed in. */
export const sessionCookie = '__Host-dke-session';

/** Read as bytes before the body becomes text, which then has blanks here. */
export const passwordText = z.string().max(4096).openapi({ format: 'password' });

/**
 * Passkeys in JSON, as browsers make and take them: PublicKeyCredential.toJSON,
 * parseRequestOptionsFromJSON, parseCreationOptionsFromJSON.
 */
export const passkeyAnswer = z
  .record(z.string(), z.json())
  .openapi({ type: 'object', description: 'PublicKeyCredential.toJSON()' });
export const passkeyQuestion = z
  .strictObject({
    options: z.record(z.string(), z.json()).openapi({ type: 'object', description: 'WebAuthn Level 3, JSON' }),
  })
  .openapi('PasskeyQuestion');

export type PasskeyOptions = z.output<typeof passkeyQuestion>['options'];

export const sessionSchema = z
  .strictObject({
    id: identifier.openapi({ description: 'Id of the user or token.' }),
    kind: z.enum(['user', 'token']),
    name: z.string().openapi({ description: 'Name of the user or token, as in the audit log.' }),
    tenantId: identifier.openapi({
      description: 'The tenant of the request: the one that `tenant` names, or your own.',
    }),
    grants: z.array(grantSchema).readonly(),
    permissions: z
      .array(
        z.strictObject({
          permission: z.string(),
          scope: grantSchema.shape.scope,
          tenantId: identifier.nullable(),
        }),
      )
      .readonly()
      .openapi({
        description:
          'What the caller may do: everywhere (scope and tenantId null), in one tenant, or with one resource.',
      }),
    missing: z
      .enum(['second-factor', 'new-password', 'enrolment'] satisfies SignInStep[])
      .nullable()
      .openapi({
        description:
          'What the session needs before anything else: verify the second factor (second-factor), set a new password ' +
          '(new-password), or set up a second factor (enrolment).',
      }),
    expiresAt: moment.nullable().openapi({ description: 'null: the caller uses a token, not a session' }),
  })
  .openapi('Session');
export type Session = z.output<typeof sessionSchema>;

export const sessionRoutes = {
  start: {
    method: 'post',
    path: '/api/session',
    needs: 'sign-in',
    attempt: true,
    summary: 'Sign in',
    description:
      'With a user name and password, or with a token. Sets the session cookie (__Host-, HttpOnly, Secure, SameSite=Strict). ' +
      '`missing` says what comes next.',
    body: z
      .strictObject({
        user: z.string().min(1).max(64).optional(),
        password: passwordText.optional(),
        token: z.string().min(1).max(512).optional(),
      })
      .refine(
        ({ user, password, token }) =>
          token === undefined
            ? user !== undefined && password !== undefined
            : user === undefined && password === undefined,
        'send user and password, or token',
      )
      .openapi('SignIn', { example: { user: 'ina', password: 'a long passphrase' } }),
    secrets: ['password'],
    answer: sessionSchema,
    setsSession: true,
  },
  methods: {
    method: 'get',
    path: '/api/sign-in',
    needs: 'sign-in',
    summary: 'List the sign-in methods',
    answer: z
      .strictObject({
        openId: z.string().nullable().openapi({ description: 'The display name of the OpenID provider; null: none.' }),
        passkeys: z.boolean(),
      })
      .openapi('SignInMethods'),
  },
  beginPasskey: {
    method: 'post',
    path: '/api/session/passkey/options',
    needs: 'sign-in',
    attempt: true,
    summary: 'Start a sign-in with a passkey',
    answer: passkeyQuestion,
  },
  passkey: {
    method: 'post',
    path: '/api/session/passkey',
    needs: 'sign-in',
    attempt: true,
    summary: 'Sign in with a passkey',
    description: 'The authenticator has verified its user, so no other factor is required.',
    body: z.strictObject({ answer: passkeyAnswer }).openapi('PasskeySignIn'),
    answer: sessionSchema,
    setsSession: true,
  },
  beginOpenId: {
    method: 'post',
    path: '/api/session/openid',
    needs: 'sign-in',
    attempt: true,
    summary: 'Start a sign-in with the OpenID provider',
    description: 'Sets a cookie that identifies the browser when it returns.',
    answer: z
      .strictObject({ url: z.string().openapi({ description: 'Address of the redirect.' }) })
      .openapi('OpenIdStart'),
  },
  finishOpenId: {
    method: 'get',
    path: '/api/session/openid/callback',
    needs: 'sign-in',
    summary: 'Receive the answer of the OpenID provider',
    description:
      'Answers 303: to the console if the sign-in succeeds, otherwise to its sign-in page, which shows the reason.',
    query: z.looseObject({ state: z.string().max(1000).optional() }),
    answer: null,
    setsSession: true,
  },
  beginSecondFactor: {
    method: 'post',
    path: '/api/session/second-factor/options',
    needs: 'signed-in',
    unfinished: ['second-factor'],
    summary: 'Start verifying a passkey as the second factor',
    answer: passkeyQuestion,
  },
  secondFactor: {
    method: 'post',
    path: '/api/session/second-factor',
    needs: 'signed-in',
    attempt: true,
    unfinished: ['second-factor'],
    summary: 'Verify the second factor',
    description: 'Send a one-time code, a recovery code, or the answer of a passkey. The session gets a new cookie.',
    body: z
      .strictObject({
        code: passwordText.optional(),
        recoveryCode: passwordText.optional(),
        passkey: passkeyAnswer.optional(),
      })
      .refine(
        ({ code, recoveryCode, passkey }) =>
          [code, recoveryCode, passkey].filter((each) => each !== undefined).length === 1,
        'send exactly one of code, recoveryCode and passkey',
      )
      .openapi('SecondFactor', { example: { code: '123456' } }),
    secrets: ['code', 'recoveryCode'],
    answer: sessionSchema,
    setsSession: true,
  },
  redeem: {
    method: 'post',
    path: '/api/session/invitation',
    needs: 'sign-in',
    attempt: true,
    summary: 'Accept an invitation',
    description: 'Sets the password and signs the person in.',
    body: z.strictObject({ invitation: z.string().min(1).max(128), password: passwordText }).openapi('InvitationUse'),
    secrets: ['password'],
    answer: sessionSchema,
    setsSession: true,
  },
  get: {
    method: 'get',
    path: '/api/session',
    needs: 'signed-in',
    unfinished: ['second-factor', 'new-password', 'enrolment'],
    summary: 'Get the current session',
    answer: sessionSchema,
  },
  end: {
    method: 'delete',
    path: '/api/session',
    needs: 'signed-in',
    unfinished: ['second-factor', 'new-password', 'enrolment'],
    summary: 'Sign out',
    answer: null,
    setsSession: true,
  },
} as const satisfies RouteGroup;
