// The session of the console's pages: an administrator token exchanged for a cookie that no script can read.

import { z } from '@hono/zod-openapi';
import { identifier, moment, type RouteGroup } from './row.ts';

export const sessionSchema = z
  .strictObject({
    id: identifier.openapi({ description: 'Id of the token that acts.' }),
    name: z.string().openapi({ description: 'Name of the token that acts; the audit log shows it.' }),
    expiresAt: moment.nullable().openapi({ description: 'null: the caller uses a token, not a session' }),
  })
  .openapi('Session');
export type Session = z.output<typeof sessionSchema>;

export const sessionRoutes = {
  start: {
    method: 'post',
    path: '/api/session',
    summary: 'Sign in',
    description: 'Sets the session cookie (__Host-, HttpOnly, Secure, SameSite=Strict).',
    access: 'sign-in',
    body: z.strictObject({ token: z.string().min(1).max(512) }).openapi('SignIn'),
    answer: sessionSchema,
  },
  get: { method: 'get', path: '/api/session', summary: 'Who acts', answer: sessionSchema },
  end: { method: 'delete', path: '/api/session', summary: 'Sign out', answer: null },
} as const satisfies RouteGroup;
