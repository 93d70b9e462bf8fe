// Sessions of the console: those of everybody, for administrators.

import { z } from '@hono/zod-openapi';
import type { SignInMethod } from '../../domain/sign-in.ts';
import { identifier, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

export const openSessionSchema = z
  .strictObject({
    id: identifier,
    current: z.boolean().openapi({ description: 'true: the session of this request.' }),
    holder: z.strictObject({ kind: z.enum(['user', 'token']), id: identifier, name: z.string() }),
    method: z.enum(['password', 'invitation', 'passkey', 'openid', 'token'] satisfies SignInMethod[]),
    secondFactor: z.boolean().openapi({ description: 'Whether the person used two factors.' }),
    createdAt: moment,
    usedAt: moment.openapi({ description: 'Accurate to the minute.' }),
    expiresAt: moment.openapi({ description: 'At the latest. Without requests it ends sooner.' }),
    peer: z.string().nullable(),
    agent: z.string().nullable().openapi({ description: 'The User-Agent of the browser.' }),
  })
  .openapi('OpenSession');
export type OpenSession = z.output<typeof openSessionSchema>;

const rotatedSessionKeySchema = z
  .strictObject({ sessionsEnded: z.int().openapi({ description: 'How many sessions were open.' }) })
  .openapi('RotatedSessionKey');

export const sessionsRoutes = {
  list: {
    method: 'get',
    path: '/api/sessions',
    needs: 'users:read',
    tenancy: 'both',
    summary: 'List sessions',
    query: pageQuery.extend({ userId: identifier.optional() }),
    answer: pageOf(openSessionSchema),
  },
  end: {
    method: 'delete',
    path: '/api/sessions/{id}',
    needs: 'users:manage',
    tenancy: 'both',
    summary: 'End a session',
    answer: openSessionSchema,
  },
  rotateKey: {
    method: 'post',
    path: '/api/sessions/rotate-key',
    needs: 'root:rotate',
    tenancy: 'platform',
    summary: 'Rotate the session key',
    description:
      "All sessions end, including the caller's, and everyone must sign in again. API tokens, access_guids and credentials stay valid. Audited.",
    answer: rotatedSessionKeySchema,
  },
} as const satisfies RouteGroup;
