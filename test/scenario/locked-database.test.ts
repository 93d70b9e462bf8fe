// Another program keeps the file of the embedded database locked while a hundred requests want to
// change something: each is refused with a hint, and each is carried out once when it is repeated
// with its Idempotency-Key.
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { type ConsoleApi, openConsoleApi } from '../support/console-api.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

let server: ServerProcess;
let api: ConsoleApi;
/**
 * One connection for all requests: a hundred handshakes at once can take longer than the server
 * allows.
 */
let session: ClientHttp2Session;
let other: DatabaseSync;
beforeAll(async () => {
  server = await startServerProcess();
  api = openConsoleApi(server, server.adminToken);
  session = connect(server.url, { ca: readFileSync(server.caFile) });
  other = new DatabaseSync(join(server.dataDirectory, 'dke.db'), { timeout: 60_000 });
});
afterAll(async () => {
  other?.close();
  session?.close();
  await server?.remove();
});

const names = Array.from({ length: 100 }, (_, index) => `vault-${String(index).padStart(2, '0')}`);
type Answer = Partial<Vault> & { readonly detail?: string; readonly hint?: string };
const create = async (name: string): Promise<Answer & { readonly status: unknown }> => {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/api/vaults',
    authorization: `Bearer ${server.adminToken}`,
    'content-type': 'application/json',
    'idempotency-key': name,
  });
  let status: unknown;
  stream.on('response', (headers) => {
    status = headers[':status'];
  });
  stream.end(JSON.stringify({ name }));
  const body = JSON.parse(await readText(stream)) as Answer;
  return { status, ...body };
};
const stored = async (): Promise<readonly string[]> => {
  const { items } = await api.call<{ items: readonly Vault[] }>('GET', '/api/vaults?limit=1000');
  return items.map(({ name }) => name).filter((name) => names.includes(name));
};

test('a hundred requests behind a lock are refused with a hint, and each is carried out once when it is repeated', async () => {
  other.exec('begin immediate');
  const refused = await Promise.all(names.map(create));
  for (const { status, detail, hint } of refused)
    expect({ status, detail, hint }).toEqual({
      status: 503,
      detail: 'another process has locked the database: nothing was changed',
      hint: 'stop the process that has the database open for writing',
    });
  // Reading continues in the meantime.
  expect(await stored()).toEqual([]);
  other.exec('rollback');

  const repeated = await Promise.all([...names, ...names].map(create));
  expect([...new Set(repeated.map(({ status }) => status))]).toEqual([201]);
  const ids = new Map(repeated.map(({ name, id }) => [name, id]));
  expect(repeated.map(({ name, id }) => [name, id])).toEqual([...names, ...names].map((name) => [name, ids.get(name)]));
  expect((await stored()).toSorted()).toEqual(names);
  const records = await api.audit('kind=vault.created');
  expect(records.filter(({ details }) => names.includes(String(details.name)))).toHaveLength(100);
});
