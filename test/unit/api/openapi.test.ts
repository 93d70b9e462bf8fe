// The API's description is made of the same rows as the API.
import { describe, expect, test } from 'vitest';
import { apiRoutes } from '../../../server/fronts/contract/api/index.ts';
import type { RouteGroup } from '../../../server/fronts/contract/api/row.ts';
import { openFront, withToken } from './operations.ts';

interface Described {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly additionalProperties?: unknown }>> };
}
interface DescribedOperation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[];
  readonly responses: Readonly<Record<string, object>>;
}

const open = new Set(
  Object.entries(apiRoutes).flatMap(([group, rows]: [string, RouteGroup]) =>
    Object.entries(rows).flatMap(([name, row]) => (row.needs === 'sign-in' ? [`${group}.${name}`] : [])),
  ),
);

const read = async (): Promise<Described> =>
  (await (await openFront().request('/api/openapi.json', withToken())).json()) as Described;

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

  test('refuses unknown members in every request, and says so', async () => {
    const { components } = await read();
    for (const name of ['NewVault', 'NewKey', 'NewTdeApplication', 'NewEndpoint', 'NewToken', 'DestroyMasterKey']) {
      expect(components.schemas[name]?.additionalProperties, name).toBe(false);
    }
  });
});
