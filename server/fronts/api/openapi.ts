// The API's description, OpenAPI 3.1, from the rows of the contract.

import { OpenAPIHono, z } from '@hono/zod-openapi';
import { approvalSchema } from '../contract/api/approvals.ts';
import { type ApiRoutes, apiRoutes } from '../contract/api/index.ts';
import { pendingMembers, problemSchema, type RouteGroup, type RouteRow, tenantParameter } from '../contract/api/row.ts';
import { problemType } from '../shared/problem.ts';
import { sessionCookie } from './authenticate.ts';
import { problemRows } from './errors.ts';

const tags: { readonly [G in keyof ApiRoutes]: string } = {
  tenants: 'Tenants',
  vaults: 'Vaults',
  keys: 'Keys',
  tdeGroups: 'TDE groups',
  applications: 'TDE applications',
  masterKeys: 'TDE master keys',
  runbooks: 'Runbooks',
  endpoints: 'Key store endpoints',
  diagnostics: 'Diagnostics',
  requests: 'Key store endpoints',
  externalKeyStores: 'External key stores',
  approvals: 'Approvals',
  snapshots: 'Snapshots',
  recoveryKeys: 'Snapshots',
  notifications: 'Notifications',
  audit: 'Audit',
  tokens: 'Tokens',
  users: 'Users',
  sessions: 'Sessions',
  profile: 'Profile',
  nodes: 'Nodes',
  session: 'Session',
  root: 'Root key',
  quarantine: 'Quarantine',
  clock: 'Clock',
  status: 'Status',
  search: 'Search',
  overview: 'Status',
  settings: 'Status',
  setup: 'Status',
};

const pathParameters = (path: string): z.ZodObject =>
  z.object(Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()])));

const requestHeaders = (row: RouteRow): z.ZodObject =>
  z.object({
    'X-Request-Id': z.string().optional(),
    ...(row.creates ? { 'Idempotency-Key': z.string().optional() } : {}),
    ...(row.changes === undefined ? {} : { 'If-Match': z.string().optional() }),
  });

const waiting = {
  202: {
    description: 'Not done: it waits until others agree (dual control). `Location` names the request.',
    content: { 'application/json': { schema: approvalSchema } },
  },
};

const success = (row: RouteRow) => {
  if (row.streams !== undefined) {
    const content = Object.fromEntries(row.streams.map((type) => [type, { schema: z.string() }]));
    return { 200: { description: 'The file', content }, ...(row.mayWait === true ? waiting : {}) };
  }
  if (row.answer === null) return { 204: { description: 'Done' } };
  const schema =
    row.method !== 'get' && row.creates === undefined && row.answer instanceof z.ZodObject
      ? row.answer.extend(pendingMembers)
      : row.answer;
  const content = { 'application/json': { schema } };
  if (row.mayWait === true) return { 200: { description: 'Done', content }, ...waiting };
  return row.creates ? { 201: { description: 'Made', content } } : { 200: { description: 'Done', content } };
};

const statuses = [...new Set(Object.values(problemRows).map(({ status }) => status))].sort((a, b) => a - b);

/** Which failures a route can have, as far as its row tells. */
const failures = (row: RouteRow) =>
  Object.fromEntries(
    statuses
      .filter((status) => status !== 412 || row.changes !== undefined)
      .filter((status) => status !== 413 || row.method === 'post')
      .filter((status) => (status !== 404 && status !== 409) || row.path.includes('{') || row.method === 'post')
      .map((status) => [
        status,
        {
          description: Object.values(problemRows)
            .filter((problem) => problem.status === status)
            .map(({ title }) => title)
            .join('; '),
          content: { [problemType]: { schema: problemSchema } },
        },
      ]),
  );

const namedTenant = z.object({
  [tenantParameter]: z
    .string()
    .optional()
    .openapi({ description: 'Id or name of the tenant to act in; absent: the own one, or the default one.' }),
});
const queryOf = (row: RouteRow): { readonly query?: z.ZodObject } => {
  if (row.needs === 'sign-in' || row.tenancy === 'platform' || row.tenancy === 'itself')
    return row.query === undefined ? {} : { query: row.query };
  return { query: (row.query ?? z.object({})).extend(namedTenant.shape) };
};

/** The description, with the permission that the route needs. */
const describeRow = ({ description, needs }: RouteRow): { readonly description?: string } => {
  const rights = needs === 'sign-in' || needs === 'signed-in' ? undefined : `Needs the permission \`${needs}\`.`;
  const text = [description, rights].filter((each) => each !== undefined).join('\n\n');
  return text === '' ? {} : { description: text };
};

export const describeApi = (version: string): object => {
  const app = new OpenAPIHono();
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookie,
  });
  for (const [group, rows] of Object.entries(apiRoutes) as [keyof ApiRoutes, RouteGroup][]) {
    for (const [name, row] of Object.entries(rows)) {
      app.openAPIRegistry.registerPath({
        method: row.method,
        path: row.path,
        operationId: `${group}.${name}`,
        tags: [tags[group]],
        summary: row.summary,
        ...describeRow(row),
        security: row.needs === 'sign-in' ? [] : [{ token: [] }, { session: [] }],
        request: {
          params: pathParameters(row.path),
          headers: requestHeaders(row),
          ...queryOf(row),
          ...(row.body === undefined ? {} : { body: { content: { 'application/json': { schema: row.body } } } }),
          ...(row.takes === undefined ? {} : { body: { content: { [row.takes]: { schema: z.string() } } } }),
        },
        responses: { ...success(row), ...failures(row) },
      });
    }
  }
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'DKE console API',
      version,
      description:
        'Vaults, keys, TDE applications and key store endpoints. Failures are problem documents (RFC 9457) with a ' +
        'stable `code`; times are RFC 3339 in UTC; lists are paged by cursor (`after`, `limit`, `next`).',
    },
  });
};
