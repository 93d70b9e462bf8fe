// The API's description is generated from the same rows as the API.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup } from '../../../server/contract/api/row.ts';
import { mostItems } from '../../../server/fronts/api/validate.ts';
import { type ApiDocument, answerOf, type DescribedOperation, json, validatorOf } from '../../support/api-document.ts';
import { folderOfTest } from '../../support/folders.ts';
import { openFront } from './operations.ts';

interface Components {
  readonly components: { readonly schemas: Readonly<Record<string, { readonly additionalProperties?: unknown }>> };
}

const open = new Set(
  Object.entries(apiRoutes).flatMap(([group, rows]: [string, RouteGroup]) =>
    Object.entries(rows).flatMap(([name, row]) => (row.needs === 'sign-in' ? [`${group}.${name}`] : [])),
  ),
);

let document: Promise<ApiDocument> | undefined;
const read = (): Promise<ApiDocument> => {
  document ??= openFront()
    .request('/api/openapi.json')
    .then((answer) => answer.json() as Promise<ApiDocument>);
  return document;
};

interface Described {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly maxItems?: number;
  readonly items?: Described;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly allOf?: readonly Described[];
  readonly anyOf?: readonly Described[];
  readonly oneOf?: readonly Described[];
}
/** Each list of a schema, by its path, and how long it may be. */
const listsIn = (
  schemas: Readonly<Record<string, Described>>,
  { $ref, type, maxItems, items, properties = {}, allOf = [], anyOf = [], oneOf = [] }: Described,
  path: string,
): (readonly [path: string, maxItems: number | undefined])[] => {
  const within = (schema: Described | undefined, at = path) =>
    schema === undefined ? [] : listsIn(schemas, schema, at);
  return [
    ...within(schemas[$ref?.split('/').at(-1) ?? '']),
    ...([type].flat().includes('array') ? [[path, maxItems] as const] : []),
    ...within(items, `${path}[]`),
    ...Object.entries(properties).flatMap(([name, schema]) => within(schema, `${path}.${name}`)),
    ...[...allOf, ...anyOf, ...oneOf].flatMap((schema) => within(schema)),
  ];
};

const operationsOf = ({ paths }: ApiDocument): readonly (DescribedOperation & { readonly method: string })[] =>
  Object.values(paths).flatMap((methods) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method })),
  );

describe('openapi.json', () => {
  test('is OpenAPI 3.1 and describes every route once', async () => {
    const { openapi, paths } = await read();
    expect(openapi).toBe('3.1.0');
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    const rows = Object.values(apiRoutes).flatMap((group: RouteGroup) =>
      Object.values(group).map(({ method, path }) => `${method} ${path}`),
    );
    expect(described.sort()).toEqual([...new Set(rows)].sort());
    expect(new Set(rows).size).toBe(rows.length);
  });

  test('asks for a credential on every route but signing in, and names every path parameter', async () => {
    const { paths } = await read();
    for (const [path, methods] of Object.entries(paths)) {
      for (const { operationId, security, parameters = [], responses } of Object.values(methods)) {
        expect(security.length, operationId).toBe(open.has(operationId) ? 0 : 2);
        const named = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`);
        expect(named, operationId).toEqual(path.match(/\{\w+\}/g) ?? []);
        expect(responses, operationId).toHaveProperty('401');
      }
    }
  });

  test('refuses unknown members in every request, and documents it', async () => {
    const { components } = (await read()) as unknown as Components;
    for (const name of ['NewVault', 'NewKey', 'NewTdeApplication', 'NewEndpoint', 'NewToken', 'DestroyMasterKey']) {
      expect(components.schemas[name]?.additionalProperties, name).toBe(false);
    }
  });

  test('says of every list in a request how long it may be, within what the API reads', async () => {
    const document = (await read()) as unknown as {
      readonly components: { readonly schemas: Readonly<Record<string, Described>> };
      readonly paths: Readonly<
        Record<string, Readonly<Record<string, { requestBody?: { content: Record<string, { schema: Described }> } }>>>
      >;
    };
    const lists = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.values(methods).flatMap(({ requestBody }) =>
        Object.values(requestBody?.content ?? {}).flatMap(({ schema }) =>
          listsIn(document.components.schemas, schema, path),
        ),
      ),
    );
    expect(lists.length).toBeGreaterThan(20);
    expect(lists.filter(([, most]) => most === undefined || most > mostItems)).toEqual([]);
  });

  test('is open to callers without a token, who generate clients from it', async () => {
    expect((await openFront().request('/api/openapi.json')).status).toBe(200);
  });

  test('every schema is valid, and the example of every request and answer is as its schema says', async () => {
    const document = await read();
    const validate = validatorOf(document);
    const faults: string[] = [];
    let examples = 0;
    for (const operation of operationsOf(document)) {
      const contents = [
        operation.requestBody,
        ...Object.keys(operation.responses).map((status) => answerOf(document, operation, status)),
      ].flatMap((each) => Object.entries(each?.content ?? {}));
      for (const [type, { schema, example }] of contents) {
        if (type !== json) continue;
        examples += 1;
        const fault = validate(schema, example);
        if (fault !== undefined) faults.push(`${operation.operationId}: ${fault}`);
      }
    }
    expect(faults).toEqual([]);
    expect(examples).toBeGreaterThan(200);
  });

  test('an answer to a change with nodes that have not confirmed it is as its schema says', async () => {
    const document = await read();
    const validate = validatorOf(document);
    const changes = operationsOf(document).filter(
      ({ method, responses }) => method !== 'get' && responses[200]?.content?.[json],
    );
    expect(changes.length).toBeGreaterThan(50);
    for (const { operationId, responses } of changes) {
      const content = responses[200]?.content?.[json];
      const answer = {
        ...(content?.example as object),
        pendingNodes: ['two'],
        pendingUntil: '2026-03-01T09:30:00.000Z',
      };
      expect(validate(content?.schema ?? {}, answer), operationId).toBeUndefined();
      expect(validate(content?.schema ?? {}, { ...answer, unknown: 1 }), operationId).toBeDefined();
    }
  });

  test.each([
    ['vaults.create', { name: 'Orders' }, { name: ' Orders' }],
    ['vaults.setDualControl', { required: 2, actions: ['destroy'] }, { required: 2, actions: ['destroy'], more: 1 }],
    [
      'tokens.create',
      { name: 'backup', grants: [{ role: 'key-manager', scope: null }], expiresAt: null },
      { name: 'backup', grants: [{ role: 'key-manager' }], expiresAt: null },
    ],
    ['tdeGroups.rename', { name: 'Payments' }, { name: 'Payments', vaultId: 'other' }],
    ['vaults.setProfile', { profile: 'high-security' }, { profile: 'strict' }],
  ])('tells good bodies of %s from wrong ones', async (id, good, wrong) => {
    const document = await read();
    const validate = validatorOf(document);
    const { requestBody } = operationsOf(document).find(({ operationId }) => operationId === id) ?? {};
    const { schema = {} } = requestBody?.content[json] ?? {};
    expect(requestBody?.required).toBe(true);
    expect(validate(schema, good)).toBeUndefined();
    expect(validate(schema, wrong)).toBeDefined();
  });

  test('describes the headers of answers, and each tag', async () => {
    const document = await read();
    const operations = operationsOf(document);
    const headersOf = (id: string, status: string): readonly string[] => {
      const operation = operations.find(({ operationId }) => operationId === id);
      return operation === undefined ? [] : Object.keys(answerOf(document, operation, status)?.headers ?? {});
    };
    expect(headersOf('vaults.create', '201')).toEqual(
      expect.arrayContaining([
        'Location',
        'Idempotent-Replayed',
        'X-Dke-Pending-Nodes',
        'X-Dke-Pending-Until',
        'X-Request-Id',
      ]),
    );
    expect(headersOf('vaults.get', '200')).toContain('ETag');
    expect(headersOf('masterKeys.destroy', '202')).toContain('Location');
    expect(headersOf('session.finishOpenId', '303')).toContain('Location');
    expect(headersOf('vaults.get', '429')).toContain('Retry-After');
    expect(headersOf('vaults.get', '405')).toContain('Allow');
    expect(headersOf('vaults.get', '401')).toContain('WWW-Authenticate');
    expect(
      operations
        .filter(({ requestBody }) => requestBody)
        .every(({ responses }) => '413' in responses && '415' in responses),
    ).toBe(true);
    expect(new Set(document.tags.map(({ name }) => name))).toEqual(new Set(operations.flatMap(({ tags }) => tags)));
    expect(document.servers).toHaveLength(1);
  });

  test('names the permission of every operation, and what it can be limited to', async () => {
    const operations = operationsOf(await read()) as readonly (DescribedOperation & {
      readonly 'x-permission'?: object;
    })[];
    const destroy = operations.find(({ operationId }) => operationId === 'masterKeys.destroy');
    expect(destroy?.['x-permission']).toEqual({
      name: 'master-keys:destroy',
      scope: { kind: 'application', parameter: 'applicationId' },
      tenancy: 'tenant',
    });
  });
});

test('the description passes the checks of an independent linter', async () => {
  const folder = folderOfTest();
  const path = join(folder, 'openapi.json');
  writeFileSync(path, JSON.stringify(await read()));
  const linter = join(resolve(import.meta.dirname, '../../..'), 'node_modules/.bin/redocly');
  const { stdout } = await promisify(execFile)(linter, ['lint', '--format', 'json', '--extends', 'recommended', path], {
    cwd: folder,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    maxBuffer: 1 << 26,
  });
  const { problems } = JSON.parse(stdout) as {
    readonly problems: readonly {
      readonly ruleId: string;
      readonly location: readonly { readonly pointer: string }[];
    }[];
  };
  // What the identity provider sends the browser to answers with a redirect, and with nothing else.
  const redirect = '#/paths/~1api~1session~1openid~1callback/get/responses';
  expect(problems.map(({ ruleId, location }) => [ruleId, location[0]?.pointer])).toEqual([
    ['operation-2xx-response', redirect],
  ]);
});
