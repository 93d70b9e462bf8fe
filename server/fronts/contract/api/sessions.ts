// Sessions of the console: those of everybody, for administrators.

import { z } from '@hono/zod-openapi';
import type { SignInMethod } from '../../../domain/sign-in.ts';
import { identifier, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

export const openSessionSchema = z
  .strictObject({
    id: identifier,
    holder: z.strictObject({ kind: z.enum(['user', 'token']), id: identifier, name: z.string() }),
    method: z.enum(['password', 'invitation', 'passkey', 'openid', 'token'] satisfies SignInMethod[]),
    secondFactor: z.boolean().openapi({ description: 'Whether two factors were shown.' }),
    createdAt: moment,
    usedAt: moment.openapi({ description: 'To the minute.' }),
    expiresAt: moment.openapi({ description: 'At the latest; without a request it ends sooner.' }),
    peer: z.string().nullable(),
    agent: z.string().nullable().openapi({ description: 'What the browser calls itself.' }),
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
    summary: 'Give sessions a new key',
    description:
      'Everyone signs in again: all sessions end, also that of the caller. API tokens, access_guids and credentials stay valid. Audited.',
    answer: rotatedSessionKeySchema,
  },
} as const satisfies RouteGroup;
