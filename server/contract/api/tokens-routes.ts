// API tokens: the credential of the API and the command, and one that reads metrics alone. Shown
// once, kept as a keyed hash.

import { z } from '@hono/zod-openapi';
import { roleNames, type Scope } from '../../domain/access.ts';
import type { TokenKind } from '../../domain/api-token.ts';
import { displayName, identifier, integrity, listOf, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

const role = z.enum(roleNames);

const grantShape = {
  role,
  scope: z
    .strictObject({ kind: z.enum(['application', 'endpoint'] satisfies Scope['kind'][]), id: identifier })
    .nullable()
    .openapi({ description: 'The one resource that an `application-owner` has; null for every other role.' }),
  tenantId: identifier
    .nullable()
    .openapi({ description: 'The tenant in which it applies; null: the whole platform and every tenant.' }),
};
export const grantSchema = z.strictObject(grantShape).openapi('Grant');

/** Absent: the whole platform, or the tenant acted in for roles that are given within one. */
export const newGrantSchema = z
  .strictObject({ ...grantShape, tenantId: grantShape.tenantId.optional() })
  .openapi('NewGrant');

export const roleSchema = z
  .strictObject({
    role,
    description: z.string(),
    scoped: z.boolean().openapi({ description: 'true: given for one application or one endpoint.' }),
    reach: z
      .enum(['platform', 'tenant'])
      .nullable()
      .openapi({ description: 'Given only for the whole platform, or only within one tenant; null: either.' }),
    permissions: z.array(z.string()).readonly(),
  })
  .openapi('Role');
export type RoleDescription = z.output<typeof roleSchema>;

const kind = z
  .enum(['api', 'metrics'] satisfies TokenKind[])
  .openapi({ description: 'metrics: reads /metrics and nothing else' });

export const tokenSchema = z
  .strictObject({
    id: identifier,
    kind,
    name: z.string(),
    grants: z.array(grantSchema).readonly(),
    createdAt: moment,
    expiresAt: moment.nullable(),
    revokedAt: moment.nullable(),
    lastUsedAt: moment.nullable(),
    ownerId: identifier.nullable().openapi({
      description:
        'The user who created it for themselves: it does no more than they may. null: a token for a program.',
    }),
    integrity,
  })
  .openapi('Token');
export type Token = z.output<typeof tokenSchema>;

export const issuedTokenSchema = z
  .strictObject({ record: tokenSchema, token: z.string().openapi({ description: 'Shown only once.' }) })
  .openapi('IssuedToken');
export type IssuedToken = z.output<typeof issuedTokenSchema>;

const newToken = z
  .strictObject({
    name: displayName,
    expiresAt: z.iso.datetime({ offset: true }).nullable().optional().openapi({ description: 'null: until revoked' }),
    kind: kind.optional().openapi({ default: 'api' }),
    grants: z
      .array(newGrantSchema)
      .max(20)
      .optional()
      .openapi({ description: 'Its roles: at least one, but none for metrics.' }),
  })
  .openapi('NewToken');

const tokenKeyChangeSchema = z
  .strictObject({
    tokensEnded: z.int().openapi({ description: 'How many tokens were revoked.' }),
    tokensLeft: z.int().openapi({
      description: 'How many are accepted only under a former key. Each is stored under the new key at its next use.',
    }),
  })
  .openapi('TokenKeyChange');
export type TokenKeyChange = z.output<typeof tokenKeyChangeSchema>;

export const tokenRoutes = {
  create: {
    method: 'post',
    path: '/api/tokens',
    needs: 'tokens:manage',
    tenancy: 'both',
    summary: 'Create a token',
    body: newToken,
    answer: issuedTokenSchema,
    creates: true,
    showsSecret: ['token'],
  },
  list: {
    method: 'get',
    path: '/api/tokens',
    needs: 'tokens:read',
    tenancy: 'both',
    summary: 'List tokens',
    query: pageQuery.extend({
      userId: identifier.optional().openapi({ description: 'Those that this user created for themselves.' }),
    }),
    answer: pageOf(tokenSchema),
  },
  roles: {
    method: 'get',
    path: '/api/roles',
    needs: 'signed-in',
    summary: 'List roles and their permissions',
    answer: listOf(roleSchema),
  },
  revoke: {
    method: 'delete',
    path: '/api/tokens/{id}',
    needs: 'tokens:manage',
    tenancy: 'both',
    summary: 'Revoke a token',
    description: 'The last valid administrator token cannot be revoked (conflict).',
    answer: tokenSchema,
  },
  rotateKey: {
    method: 'post',
    path: '/api/tokens/rotate-key',
    needs: 'tokens:manage',
    tenancy: 'platform',
    summary: 'Rotate the key of API tokens',
    description:
      'Tokens stay valid: each is stored under the new key at its next use. After a compromise, all tokens are revoked at once; refused (conflict) if no administrator would remain. Audited.',
    body: z
      .strictObject({
        compromised: z.boolean().optional().openapi({ description: "Revoke all tokens now, including the caller's." }),
      })
      .openapi('TokenKeyRotation'),
    answer: tokenKeyChangeSchema,
  },
  endFormerKey: {
    method: 'post',
    path: '/api/tokens/end-former-key',
    needs: 'tokens:manage',
    tenancy: 'platform',
    summary: 'Remove the former key of API tokens',
    description:
      'Its records are overwritten. Refused (conflict) while some tokens have not been used since the rotation; `force` revokes them, but never the last administrator. Audited.',
    body: z
      .strictObject({
        force: z
          .boolean()
          .optional()
          .openapi({ description: 'Revoke tokens that have not been used since the rotation.' }),
      })
      .openapi('EndOfTokenKey'),
    answer: tokenKeyChangeSchema,
  },
} as const satisfies RouteGroup;
