// The reference of the API at the console: it shows every operation, and what it shows as an
// example is what the service takes.
import { expect, test } from 'vitest';
import { formatTarget } from '../../../server/clients/web/src/api/client.ts';
import {
  type ApiDocument,
  answerOf,
  bodyOf,
  exampleCall,
  isFound,
  membersOf,
  operationsOf,
  typeOf,
} from '../../../server/clients/web/src/reference/describe-api.ts';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup } from '../../../server/contract/api/row.ts';
import { adminToken, openFront } from '../api/operations.ts';

const front = openFront();
const document = (await (await front.request('/api/openapi.json')).json()) as ApiDocument;
const operations = operationsOf(document);
const named = (id: string) => {
  const found = operations.find(({ operationId }) => operationId === id);
  if (found === undefined) throw new Error(`${id} is not described`);
  return found;
};

test('every operation is shown, below a heading', () => {
  const rows = Object.entries(apiRoutes).flatMap(([group, all]: [string, RouteGroup]) =>
    Object.keys(all).map((name) => `${group}.${name}`),
  );
  expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(rows.toSorted());
  const headings = document.tags.map(({ name }) => name);
  for (const { tags } of operations) expect(headings).toContain(tags[0]);
});

/** Refusals of the form of a request: the wrong method, media type or condition. */
const ofForm = [405, 415, 428];

test.each(operations.map((operation) => [operation.operationId, operation] as const))(
  'the example of %s is a request that the service takes',
  async (_, operation) => {
    const { ifMatch, ...call } = exampleCall(operation);
    const isFile = operation.requestBody !== undefined && bodyOf(operation) === undefined;
    const answer = await front.request(formatTarget(call), {
      method: call.method,
      headers: {
        authorization: `Bearer ${adminToken}`,
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        ...(call.method === 'GET' ? {} : { 'content-type': isFile ? 'application/octet-stream' : 'application/json' }),
      },
      ...(call.method === 'GET' ? {} : { body: isFile ? 'a file' : JSON.stringify(call.body ?? {}) }),
    });
    const text = await answer.text();
    expect(ofForm, text).not.toContain(answer.status);
    // The request must not be refused for a wrong path, or for a wrong member or parameter.
    expect(text).not.toMatch(/path not found|"errors"/);
  },
);

test('an operation is found by words of its path, name and description', () => {
  const create = named('vaults.create');
  expect(isFound(create, 'create VAULT')).toBe(true);
  expect(isFound(create, 'post /api/vaults')).toBe(true);
  expect(isFound(create, 'create tenant')).toBe(false);
});

test('members have their type, and say which are required', () => {
  expect(membersOf(bodyOf(named('keys.create'))?.schema, document)).toEqual([
    { name: 'name', type: 'string', required: true, description: undefined },
    { name: 'vaultId', type: 'string', required: true, description: undefined },
    {
      name: 'tags',
      type: 'list of string',
      required: false,
      description: 'Words or name=value. Duplicates are ignored.',
    },
  ]);
  expect(answerOf(named('keys.export'))).toMatchObject({ status: '200', content: undefined });
  expect(typeOf({ anyOf: [{ $ref: '#/components/schemas/Key' }, { type: 'null' }] })).toBe('Key or null');
  expect(typeOf({ type: ['string', 'null'], format: 'date-time' })).toBe('string or null, date-time');
  expect(typeOf({ enum: ['csv', 'ndjson'] })).toBe('csv or ndjson');
});
