// API tokens: the credential of the API and the command, and one that reads metrics alone. Shown once, kept as a keyed hash.

import { z } from '@hono/zod-openapi';
import type { TokenKind } from '../../../domain/api-token.ts';
import { displayName, identifier, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

const kind = z
  .enum(['administrator', 'metrics'] satisfies TokenKind[])
  .openapi({ description: 'metrics: reads /metrics and nothing else' });

export const tokenSchema = z
  .strictObject({
    id: identifier,
    kind,
    name: z.string(),
    createdAt: moment,
    expiresAt: moment.nullable(),
    revokedAt: moment.nullable(),
    lastUsedAt: moment.nullable(),
  })
  .openapi('Token');
export type Token = z.output<typeof tokenSchema>;

export const issuedTokenSchema = z
  .strictObject({ record: tokenSchema, token: z.string().openapi({ description: 'Shown this once.' }) })
  .openapi('IssuedToken');
export type IssuedToken = z.output<typeof issuedTokenSchema>;

const newToken = z
  .strictObject({
    name: displayName,
    expiresAt: z.iso.datetime({ offset: true }).nullable().optional().openapi({ description: 'null: until revoked' }),
    kind: kind.optional().openapi({ default: 'administrator' }),
  })
  .openapi('NewToken');

export const tokenRoutes = {
  create: {
    method: 'post',
    path: '/api/tokens',
    summary: 'Create a token',
    body: newToken,
    answer: issuedTokenSchema,
    creates: true,
    showsSecret: true,
  },
  list: { method: 'get', path: '/api/tokens', summary: 'List tokens', query: pageQuery, answer: pageOf(tokenSchema) },
  revoke: {
    method: 'delete',
    path: '/api/tokens/{id}',
    summary: 'Revoke a token',
    description: 'The last live one of an administrator is not revoked: conflict.',
    answer: tokenSchema,
  },
} as const satisfies RouteGroup;
