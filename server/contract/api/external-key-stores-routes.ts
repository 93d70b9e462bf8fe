// External key stores: the cloud's side of an endpoint, and the state of its connection.

import { z } from '@hono/zod-openapi';
import type { ConnectionState } from '../../domain/external-key-store.ts';
import { displayName, identifier, integrity, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

export const connectionSchema = z
  .strictObject({
    state: z.enum(['DISCONNECTED', 'CONNECTING', 'CONNECTED', 'FAILED', 'DISCONNECTING'] satisfies ConnectionState[]),
    errorCode: z.string().nullable().openapi({ description: 'ConnectionErrorCode of AWS KMS' }),
    detail: z.string().nullable(),
    source: z.enum(['probe', 'cloud']).nullable().openapi({
      description:
        'Source of the state: the probe of DKE, which acts as the cloud, or the cloud. Null before the first check.',
    }),
    since: moment.nullable(),
    checkedAt: moment.nullable(),
  })
  .openapi('Connection');

export const externalKeyStoreSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    name: z.string(),
    customKeyStoreId: z.string(),
    region: z.string(),
    endpointId: identifier,
    createdAt: moment,
    connection: connectionSchema,
    integrity,
  })
  .openapi('ExternalKeyStore');
export type ExternalKeyStore = z.output<typeof externalKeyStoreSchema>;

const newExternalKeyStore = z
  .strictObject({
    name: displayName,
    customKeyStoreId: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be 1 to 64 letters, digits and hyphens')
      .openapi({ example: 'cks-1234567890abcdef0' }),
    region: z
      .string()
      .regex(/^[a-z0-9-]{1,32}$/, 'must be a region, for example eu-central-1')
      .openapi({ example: 'eu-central-1' }),
    endpointId: identifier,
  })
  .openapi('NewExternalKeyStore');

export const externalKeyStoreRoutes = {
  register: {
    method: 'post',
    path: '/api/external-key-stores',
    needs: 'endpoints:manage',
    summary: 'Register an external key store',
    description: 'Its connection is checked soon, and then regularly.',
    body: newExternalKeyStore,
    answer: externalKeyStoreSchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/external-key-stores',
    needs: 'endpoints:read',
    summary: 'List external key stores',
    query: pageQuery,
    answer: pageOf(externalKeyStoreSchema),
  },
  get: {
    method: 'get',
    path: '/api/external-key-stores/{id}',
    needs: 'endpoints:read',
    summary: 'Get an external key store',
    answer: externalKeyStoreSchema,
  },
  probe: {
    method: 'post',
    path: '/api/external-key-stores/{id}/probe',
    needs: 'diagnostics:run',
    summary: 'Check the connection of an external key store now',
    answer: externalKeyStoreSchema,
  },
  remove: {
    method: 'delete',
    path: '/api/external-key-stores/{id}',
    needs: 'endpoints:manage',
    summary: 'Unregister an external key store',
    description: 'Nothing changes in the cloud or at the endpoint.',
    answer: externalKeyStoreSchema,
  },
} as const satisfies RouteGroup;
