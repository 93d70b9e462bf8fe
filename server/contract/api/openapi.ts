// The API's description, OpenAPI 3.1, from the rows of the contract.

import { OpenAPIHono, z } from '@hono/zod-openapi';
import { pendingNodesHeader, pendingUntilHeader } from '../pending-nodes.ts';
import { approvalSchema } from './approvals-routes.ts';
import { type ApiRoutes, apiRoutes } from './index.ts';
import { exampleOf, type JsonSchema, nameOfRef, refTo, type Schemas } from './openapi-examples.ts';
import { problemRows, problemType } from './problem-rows.ts';
import { pendingMembers, problemSchema, type RouteGroup, type RouteRow, replaces, tenantParameter } from './row.ts';
import { sessionCookie } from './sign-in-routes.ts';
import { versioned } from './versioned.ts';

/** Tags of the groups of routes: the name, and what the group is about. */
const tags: { readonly [G in keyof ApiRoutes]: readonly [name: string, description?: string] } = {
  tenants: ['Tenants', 'Owners of all other resources; each sees only its own.'],
  vaults: ['Vaults', 'Groups of keys with a common state and dual-control rule.'],
  keys: ['Keys', 'General-purpose keys for key store endpoints, and what all kinds of keys have in common.'],
  tdeGroups: ['TDE groups', 'Applications that share their master keys.'],
  applications: ['TDE applications', 'Databases: their access_guids, instances and settings.'],
  packages: ['Packages', 'Packages for database hosts, which the service distributes.'],
  masterKeys: ['TDE master keys', 'Keys that databases created, with their history and destruction.'],
  runbooks: ['Runbooks', 'Procedures for a database, with the values of an application filled in.'],
  endpoints: ['Key store endpoints', 'The addresses that a cloud key service calls, and the log of its requests.'],
  diagnostics: ['Diagnostics', 'Checks of an endpoint, layer by layer.'],
  requests: ['Key store endpoints'],
  externalKeyStores: ['External key stores', 'Custom key stores of the cloud, and the state of their connection.'],
  approvals: ['Approvals', 'Requests under dual control.'],
  snapshots: ['Snapshots', 'Sealed copies of a tenant: create, verify, export, import, restore.'],
  copies: ['Copies', 'Files that left the service with its keys, and the confirmation that they are destroyed.'],
  recoveryKeys: ['Snapshots'],
  notifications: ['Notifications', 'Alerts that need action.'],
  audit: ['Audit', 'The audit log, its checkpoints and its sinks.'],
  tokens: ['Tokens', 'Credentials of programs, and the roles that can be given.'],
  users: ['Users', 'People, their roles and their second factors.'],
  sessions: ['Sessions', 'Sessions of people.'],
  profile: ['Profile', 'Your own password, second factors and tokens.'],
  nodes: ['Nodes', 'Servers that share one database.'],
  session: ['Session', 'Sign in and sign out.'],
  deviceSignIn: ['Session'],
  root: ['Root key', 'The key that seals all other keys, and its providers.'],
  quarantine: ['Quarantine', 'A database that failed its rollback check.'],
  clock: ['Clock', 'The clock that decides deadlines.'],
  status: ['Status', 'State, health and settings of the service.'],
  search: ['Search', 'Find resources by name or id.'],
  overview: ['Status'],
  settings: ['Status'],
  setup: ['Status'],
};

const pathParameters = (path: string): z.ZodObject =>
  z.object(Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()])));

const text = z.string();
const ofIfMatch = 'The ETag of the resource when you read it.';
const requestHeaders = (row: RouteRow): z.ZodObject =>
  z.object({
    'X-Request-Id': z.string().optional().openapi({ description: "Shown in the audit log and in the server's log." }),
    ...(row.creates
      ? {
          'Idempotency-Key': z
            .string()
            .optional()
            .openapi({ description: 'A repeat with the same key creates nothing twice.' }),
        }
      : {}),
    ...(row.changes === undefined
      ? {}
      : { 'If-Match': (replaces(row) ? text : text.optional()).openapi({ description: ofIfMatch }) }),
  });

const headers = (all: Readonly<Record<string, string>>): z.ZodObject =>
  z.object(
    Object.fromEntries(
      Object.entries(all).map(([name, description]) => [name, text.optional().openapi({ description })]),
    ),
  );

const always = { 'X-Request-Id': 'The id of the request: yours, or a new one.' };
/** Headers of every answer to a change. */
const pending = {
  [pendingNodesHeader]: 'Nodes that have not confirmed the change: percent-encoded names, separated by commas.',
  [pendingUntilHeader]: 'Until when one of these nodes can use the earlier state: a time, or never.',
};
const location = { Location: 'The path of the created resource.' };

const waiting = {
  202: {
    description: 'Not done yet: approvals are required (dual control). `Location` names the request.',
    headers: headers({ ...always, Location: 'The path of the approval request.' }),
    content: { 'application/json': { schema: approvalSchema } },
  },
};

const success = (row: RouteRow) => {
  const mayWait = row.mayWait === true ? waiting : {};
  if (row.streams !== undefined) {
    const content = Object.fromEntries(row.streams.map((type) => [type, { schema: text }]));
    const disposition = { 'Content-Disposition': 'The name of the file.' };
    return { 200: { description: 'The file', headers: headers({ ...always, ...disposition }), content }, ...mayWait };
  }
  const isChange = row.method !== 'get';
  const common = { ...always, ...(isChange ? pending : {}) };
  if (row.setsSession && row.answer === null && !isChange)
    return {
      303: {
        description: 'Redirect to the console',
        headers: headers({ ...always, Location: 'Address of the redirect.' }),
      },
    };
  if (row.answer === null) return { 204: { description: 'Done', headers: headers(common) } };
  const content = { 'application/json': { schema: row.answer } };
  if (row.creates) {
    const repeated = { 'Idempotent-Replayed': 'true: the answer to an earlier request with the same Idempotency-Key.' };
    const made = { description: 'Created', headers: headers({ ...common, ...location, ...repeated }), content };
    return { 201: made, ...mayWait };
  }
  const etag = versioned.has(row) ? { ETag: 'The version of the resource, for If-Match.' } : {};
  return { 200: { description: 'Done', headers: headers({ ...common, ...etag }), content }, ...mayWait };
};

const statuses = [...new Set([405, 415, ...Object.values(problemRows).map(({ status }) => status)])].sort(
  (a, b) => a - b,
);
const ofHttp: Readonly<Record<number, string>> = {
  405: 'The path does not support this method',
  415: 'The media type of the body is not supported',
};
const ofFailures: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'WWW-Authenticate': 'The scheme: Bearer.' },
  405: { Allow: 'The methods that this path supports.' },
  429: { 'Retry-After': 'Seconds.' },
  503: { 'Retry-After': 'Seconds.' },
};

/** Which failures a route can have, as far as its row tells. */
const failures = (row: RouteRow) => {
  const hasBody = row.body !== undefined || row.takes !== undefined;
  const isPossible = (status: number): boolean => {
    if (status === 412) return row.changes !== undefined;
    if (status === 428) return replaces(row);
    if (status === 413 || status === 415) return hasBody;
    return true;
  };
  return Object.fromEntries(
    statuses.filter(isPossible).map((status) => {
      const titles = Object.values(problemRows).filter((problem) => problem.status === status);
      return [
        status,
        {
          description: ofHttp[status] ?? titles.map(({ title }) => title).join('; '),
          headers: headers({ ...always, ...ofFailures[status] }),
          content: { [problemType]: { schema: problemSchema } },
        },
      ];
    }),
  );
};

const namedTenant = z.object({
  [tenantParameter]: text
    .optional()
    .openapi({ description: 'Id or name of the tenant to act in. By default your own tenant, or the default tenant.' }),
});
const queryOf = (row: RouteRow): { readonly query?: z.ZodObject } => {
  if (row.needs === 'sign-in' || row.tenancy === 'platform' || row.tenancy === 'itself')
    return row.query === undefined ? {} : { query: row.query };
  return { query: (row.query ?? z.object({})).extend(namedTenant.shape) };
};

const bodyOf = (row: RouteRow) => {
  if (row.takes !== undefined) return { body: { required: true, content: { [row.takes]: { schema: text } } } };
  if (row.body === undefined) return {};
  // An absent body is an object without members.
  const required = !row.body.safeParse({}).success;
  return { body: { required, content: { 'application/json': { schema: row.body } } } };
};

/** The description, with the permission that the route needs. */
const describeRow = ({ description, needs }: RouteRow): { readonly description?: string } => {
  const rights = needs === 'sign-in' || needs === 'signed-in' ? undefined : `Needs the permission \`${needs}\`.`;
  const all = [description, rights].filter((each) => each !== undefined).join('\n\n');
  return all === '' ? {} : { description: all };
};

/**
 * For programs: the permission, the parameter of the resource that roles can be limited to, and
 * whose the resource is.
 */
const permissionOf = ({ needs, scope, tenancy }: RouteRow): object =>
  needs === 'sign-in' || needs === 'signed-in'
    ? {}
    : { 'x-permission': { name: needs, scope: scope ?? null, tenancy: tenancy ?? 'tenant' } };

interface Content {
  schema: JsonSchema;
  example?: unknown;
}
interface Answer {
  readonly content?: Record<string, Content>;
}
interface Operation {
  readonly requestBody?: { readonly content: Record<string, Content> };
  readonly responses: Record<string, Answer | { readonly $ref: string }>;
}
interface Document {
  readonly components: { readonly schemas: Record<string, JsonSchema>; responses?: Record<string, Answer> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** In a JSON Schema, a pattern is an expression without delimiters, and always of Unicode. */
const withPlainPatterns = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withPlainPatterns);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]: [string, unknown]) => [
      name,
      name === 'pattern' && typeof member === 'string' ? member.replace(/\/u$/, '') : withPlainPatterns(member),
    ]),
  );
};

/** What every answer to a change can have besides its own members. */
const addPendingMembers = (document: Document, pendingSchema: JsonSchema): void => {
  const { schemas } = document.components;
  const changed = (schema: JsonSchema): JsonSchema => {
    const name = schema.$ref === undefined ? undefined : nameOfRef(schema.$ref);
    const own = name === undefined ? schema : schemas[name];
    if (own?.properties === undefined) return schema;
    const extended = { ...own, properties: { ...own.properties, ...pendingSchema.properties } };
    if (name === undefined) return extended;
    schemas[`${name}AfterChange`] ??= extended;
    return refTo(`${name}AfterChange`);
  };
  for (const methods of Object.values(document.paths))
    for (const [method, { responses }] of Object.entries(methods)) {
      const answer = responses[200];
      if (method === 'get' || answer === undefined || '$ref' in answer) continue;
      const content = answer.content?.['application/json'];
      if (content !== undefined) content.schema = changed(content.schema);
    }
};

/** A failure is described once for each status. */
const shareFailures = ({ components, paths }: Document): void => {
  const shared: Record<string, Answer> = {};
  components.responses = shared;
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods)))
    for (const [status, answer] of Object.entries(responses)) {
      if (status < '400') continue;
      shared[`Failure${status}`] ??= answer as Answer;
      responses[status] = { $ref: `#/components/responses/Failure${status}` };
    }
};

/** Schemas that only others had as their base. */
const dropUnused = (document: Document): void => {
  const { schemas } = document.components;
  for (let before = -1; before !== Object.keys(schemas).length; ) {
    before = Object.keys(schemas).length;
    const used = new Set(
      [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name),
    );
    for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name];
  }
};

const addExamples = ({ components: { schemas }, paths }: Document): void => {
  const add = (content: Record<string, Content> | undefined): void => {
    const json = content?.['application/json'];
    if (json !== undefined) json.example = exampleOf(json.schema, schemas as Schemas);
  };
  for (const { requestBody, responses } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    add(requestBody?.content);
    for (const answer of Object.values(responses)) if (!('$ref' in answer)) add(answer.content);
  }
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
        tags: [tags[group][0]],
        summary: row.summary,
        ...describeRow(row),
        ...permissionOf(row),
        ...(row.long !== undefined ? { 'x-long': true } : {}),
        ...(row.showsSecret !== undefined ? { 'x-shows-once': row.showsSecret } : {}),
        security: row.needs === 'sign-in' ? [] : [{ token: [] }, { session: [] }],
        request: {
          params: pathParameters(row.path),
          headers: requestHeaders(row),
          ...queryOf(row),
          ...bodyOf(row),
        },
        responses: { ...success(row), ...failures(row) },
      });
    }
  }
  const pendingName = 'PendingNodes';
  app.openAPIRegistry.register(pendingName, z.strictObject(pendingMembers));
  const generated = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'DKE API',
      version,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      description:
        'Vaults, keys, TDE applications and key store endpoints. Failures are problem documents (RFC 9457) with a ' +
        'stable `code`; times are RFC 3339 in UTC; lists are paged by cursor (`after`, `limit`, `next`).',
    },
    servers: [{ url: '/', description: 'The service that serves this document' }],
    tags: Object.values(tags).flatMap(([name, description]) =>
      description === undefined ? [] : [{ name, description }],
    ),
  });
  // The types of the library are those of OpenAPI 3.0.
  const document = withPlainPatterns(generated) as Document;
  addPendingMembers(document, document.components.schemas[pendingName] ?? {});
  shareFailures(document);
  dropUnused(document);
  addExamples(document);
  return document;
};
