// When a value of dke.toml takes effect: at a restart, and none of them at a reload, as
// docs/dke.toml says. The keys are those that the running service lists, so a new one is among
// them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Settings } from '../../server/contract/api/settings-routes.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const statement =
  'A change takes effect at a restart. SIGHUP (systemctl reload dke-server) does not read this file: it reads the files of [tls]\n' +
  '# again, and opens the log file again.';
const documented = readFileSync(resolve(import.meta.dirname, '../../docs/dke.toml'), 'utf8');

let server: ServerProcess;
let token: string;
beforeAll(async () => {
  server = await startServerProcess({ toml: '[log]\nlevel = "info"\n' });
  token = server.adminToken;
});
afterAll(() => server?.remove());

const settings = async (): Promise<ReadonlyMap<string, unknown>> => {
  const { items } = await openConsoleApi(server, token).call<Settings>('GET', '/api/settings');
  return new Map(items.map(({ name, value }) => [name, value === null ? null : JSON.parse(value)]));
};
const config = (): string => join(server.folder, 'dke.toml');

/** Not numbers, or numbers that name something of this host. */
const fixed: Readonly<Record<string, string>> = {
  'server.port': 'the test needs the address',
  'memory.locked_bytes': 'how much may be locked is a limit of this host',
};

test('the page says when', () => {
  expect(documented).toContain(statement);
});

test('no key takes effect at a reload', async () => {
  const before = await settings();
  expect(before.size).toBeGreaterThan(50);
  // Each key, with the value of the page or another one.
  const every = documented
    .replaceAll(/^# ([a-z_]+ = )/gm, '$1')
    .replaceAll(/^([a-z_]+) = (\d+)$/gm, (_, name: string, value: string) => `${name} = ${Number(value) + 1}`)
    .replaceAll(/^([a-z_]+) = (true|false)$/gm, (_, name: string, value: string) => `${name} = ${value === 'false'}`);
  for (const name of before.keys()) expect(every, name).toMatch(new RegExp(`^${name.split('.')[1]} = `, 'm'));
  const own = readFileSync(config(), 'utf8');
  writeFileSync(config(), every);
  server.child.kill('SIGHUP');
  await until('the reload', async () => (server.log().includes('the certificate was reloaded') ? true : undefined));
  expect(await settings()).toEqual(before);
  writeFileSync(config(), own);
});

test('each number and switch takes effect at a restart', async () => {
  const before = await settings();
  const changed = new Map(
    [...before].flatMap(([name, value]): [string, unknown][] =>
      name in fixed
        ? []
        : typeof value === 'number'
          ? [[name, value >= 100 ? value - 1 : value + 1]]
          : typeof value === 'boolean'
            ? [[name, !value]]
            : [],
    ),
  );
  const tables = Map.groupBy(changed, ([name]) => name.split('.')[0] ?? '');
  const { folder, port, url } = server;
  await server.stop();
  const toml = [...tables]
    .filter(([table]) => table !== 'server')
    .map(
      ([table, rows]) => `[${table}]\n${rows.map(([name, value]) => `${name.split('.')[1]} = ${value}\n`).join('')}`,
    );
  const inServer = (tables.get('server') ?? [])
    .filter(([name]) => name !== 'server.drain_seconds')
    .map(([name, value]) => `${name.split('.')[1]} = ${value}\n`);
  server = await startServerProcess({ folder, port, toml: `${inServer.join('')}${toml.join('')}` });
  expect(server.url).toBe(url);
  const after = await settings();
  for (const [name, value] of changed)
    if (name !== 'server.drain_seconds') expect([name, after.get(name)]).toEqual([name, value]);
  console.info(
    `${changed.size} of ${before.size} keys were changed; the others are texts, or: ${JSON.stringify(fixed)}`,
  );
});
