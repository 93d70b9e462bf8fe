// The session of the console's pages: an administrator token exchanged for a cookie that no script can read.

import { z } from '@hono/zod-openapi';
import { identifier, moment, type RouteGroup } from './row.ts';
import { grantSchema } from './tokens.ts';

export const sessionSchema = z
  .strictObject({
    id: identifier.openapi({ description: 'Id of the token that acts.' }),
    name: z.string().openapi({ description: 'Name of the token that acts; the audit log shows it.' }),
    tenantId: identifier.openapi({ description: 'The tenant acted in: the one that `tenant` names, or the own one.' }),
    grants: z.array(grantSchema).readonly(),
    permissions: z
      .array(
        z.strictObject({
          permission: z.string(),
          scope: grantSchema.shape.scope,
          tenantId: grantSchema.shape.tenantId,
        }),
      )
      .readonly()
      .openapi({
        description:
          'What the caller may do: everywhere (scope and tenantId null), within one tenant, or with one resource.',
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
    summary: 'Sign in',
    description: 'Sets the session cookie (__Host-, HttpOnly, Secure, SameSite=Strict).',
    body: z.strictObject({ token: z.string().min(1).max(512) }).openapi('SignIn'),
    answer: sessionSchema,
  },
  get: { method: 'get', path: '/api/session', needs: 'signed-in', summary: 'Who acts', answer: sessionSchema },
  end: { method: 'delete', path: '/api/session', needs: 'signed-in', summary: 'Sign out', answer: null },
} as const satisfies RouteGroup;
