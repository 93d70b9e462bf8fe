// The bundle for support, on the host of a real service in which a canary is in every place of a
// secret: none of them is in it, in any usual encoding; its content is shown first; and it can be
// created for a stopped service.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, openConsoleApi, registerApplication } from '../support/console-api.ts';
import { leaksIn } from '../support/encodings.ts';
import { builtServer } from '../support/killed-server.ts';
import { whyNoOtherUsers } from '../support/other-users.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

let folder: string;
let server: ServerProcess;
/** Planted secrets by their places; a bundle must not contain any of them. */
const canaries = new Map<string, string>();
const at = (name: string): string => join(folder, name);
const random = (): string => randomBytes(24).toString('base64url');
const plant = (where: string, value = random()): string => {
  canaries.set(where, value);
  return value;
};
const plantFile = (name: string, value = random()): void =>
  writeFileSync(at(name), `${plant(name, value)}\n`, { mode: 0o600 });

const leaksOf = (text: string): readonly string[] => leaksIn(text, canaries);

const bundle = (out: string, ...args: string[]) =>
  runCommand(
    [
      ...['--server', server.url, '--ca-file', server.caFile, '--token-file', at('api-token')],
      ...['support', 'bundle', '--config', at('dke.toml'), '--out', at(out), ...args],
    ],
    { cwd: folder },
  );
type Bundle = Readonly<Record<string, Readonly<Record<string, unknown>> & { readonly omitted?: string }>>;
const read = (name: string): Bundle => JSON.parse(readFileSync(at(name), 'utf8')) as Bundle;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-support-'));
  // Words only, which match no pattern.
  plantFile(
    'root-passphrase',
    `correct horse ${random()
      .toLowerCase()
      .replaceAll(/[^a-z]/g, '')
      .slice(0, 12)}`,
  );
  plantFile('webhook-secret');
  plantFile('smtp-password', `it's "quoted" & <marked> ${random()}`);
  plantFile('sink-token');
  plantFile('client-secret');
  const path = plant('the path of a webhook');
  const query = plant('the query of a webhook');
  const name = plant('the user of a sink');
  const toml = `[erasure]
gather_ms = 20
[log]
destination = "dke.log"
[[root.providers]]
name = "people"
type = "passphrase"
file = "root-passphrase"
[[notifications.targets]]
name = "chat"
type = "webhook"
url = "https://127.0.0.1:1/services/${path}?key=${query}"
secret_file = "webhook-secret"
[[notifications.targets]]
name = "mail"
type = "email"
host = "127.0.0.1"
port = 1
from = "dke@example.com"
to = ["operator@example.com"]
user = "dke"
password_file = "smtp-password"
[[audit.sinks]]
name = "lake"
type = "https"
url = "https://${name}@127.0.0.1:1/in"
token_file = "sink-token"
[oidc]
issuer = "https://127.0.0.1:1/realm"
client_id = "dke"
client_secret_file = "client-secret"
`;
  server = await startServerProcess({ folder, program: [builtServer], toml });
  const api = openConsoleApi(server, server.adminToken);
  writeFileSync(at('api-token'), plant('the administrator token', server.adminToken), { mode: 0o600 });
  await createXksEndpoint({ server, api }, 'cloud');
  const { items } = await api.call<{ items: readonly { id: string }[] }>('GET', '/api/endpoints');
  const { XksProxyAuthenticationCredential } = await api.call<ProxyConfiguration>(
    'POST',
    `/api/endpoints/${items[0]?.id}/credentials`,
  );
  plant('a credential', XksProxyAuthenticationCredential.RawSecretAccessKey);
  const registered = await registerApplication(api, 'erp', await createGroup(api, 'finance'));
  plant('an access_guid', registered.accessGuid);
  for (const [file, name] of [
    ['tls.key', 'the key of the certificate'],
    ['root.key', 'the root key file'],
  ] as const) {
    const bytes = readFileSync(join(server.dataDirectory, file), 'latin1');
    const lines = bytes.split('\n').filter((line) => line.length === 64);
    for (const [i, line] of lines.entries()) plant(`${name}, line ${i}`, line);
  }
  // What another program, or a fault, may have written into the log.
  const key = readFileSync(join(server.dataDirectory, 'tls.key'), 'utf8');
  const lines = [
    `plain text with Bearer ${server.adminToken}`,
    JSON.stringify({ level: 50, msg: `the key is ${key}` }),
    JSON.stringify({ level: 50, msg: 'failed', password: plant('a member of a log line', 'short1') }),
    `password=${plant('a pair in a log line', 'open sesame, two')}`,
    `GET https://user:${plant('an address in a log line')}@example.com/${plant('a path in a log line')}`,
    `base64 ${Buffer.from(plant('Base64 in a log line', `words ${random()}`)).toString('base64')}`,
    `hex ${Buffer.from(plant('hexadecimal in a log line', `words ${random()}`)).toString('hex')}`,
    JSON.stringify({ level: 30, msg: 'a line that help needs', port: 4711 }),
  ];
  appendFileSync(at('dke.log'), `${lines.join('\n')}\n`);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('what is in it is shown before it is written, and nothing is written without a yes', async () => {
  const asked = await bundle('never.json');
  expect([asked.code, existsSync(at('never.json'))]).toEqual([2, false]);
  for (const part of ['versions', 'configuration', 'doctor', 'database', 'status', 'metrics', 'log'])
    expect(asked.stderr).toMatch(new RegExp(`^${part} +\\d+ `, 'm'));
  expect(asked.stderr).toContain("--confirm 'write'");
  expect(leaksOf(asked.stderr)).toEqual([]);
});

test('it has what help needs, and none of the secrets of the host', async () => {
  expect(canaries.size).toBeGreaterThan(15);
  const made = await bundle('support.json', '--show', '--confirm', 'write');
  expect(made.code).toBe(0);
  const text = readFileSync(at('support.json'), 'utf8');
  expect(made.stderr).toBe(text);
  expect((statSync(at('support.json')).mode & 0o777).toString(8)).toBe('600');
  expect(leaksOf(text)).toEqual([]);
  const parts = read('support.json');
  expect(Object.entries(parts).filter(([, part]) => part.omitted !== undefined)).toEqual([]);
  expect(parts.versions).toMatchObject({ node: process.version });
  expect(parts.configuration).toMatchObject({
    'log.destination': 'dke.log',
    'notifications.targets': [
      { name: 'chat', url: 'https://127.0.0.1:1/***', secret_file: 'webhook-secret' },
      { name: 'mail', to: ['(set)'] },
    ],
    'audit.sinks': [{ url: 'https://127.0.0.1:1/***' }],
  });
  expect(parts.doctor).toContainEqual(expect.objectContaining({ id: 'configuration', state: 'ok' }));
  expect(parts.database).toMatchObject({ rows: { api_tokens: 1, endpoints: 1 } });
  expect(parts.status).toMatchObject({ health: { healthy: true } });
  expect(parts.metrics).toContainEqual(expect.stringMatching(/^dke_root_epoch /));
  expect(parts.log).toContainEqual(expect.objectContaining({ msg: 'a line that help needs', port: 4711 }));
});

test.each([
  ['as it is', (passphrase: string) => passphrase],
  ['in an address', encodeURIComponent],
])('a part that has the content of a secret file in it, %s, is left out', async (_, encode) => {
  writeFileSync(at('other.log'), `a person typed ${encode(canaries.get('root-passphrase') ?? '')} here\n`);
  rmSync(at('leaking.json'), { force: true });
  const made = await bundle('leaking.json', '--log', at('other.log'), '--confirm', 'write');
  expect(made.code).toBe(0);
  expect(leaksOf(readFileSync(at('leaking.json'), 'utf8'))).toEqual([]);
  expect(read('leaking.json').log?.omitted).toContain(at('root-passphrase'));
});

test('of a stopped service it has what is on the host, and says what is missing', async () => {
  await server.stop();
  const made = await bundle('stopped.json', '--confirm', 'write');
  expect(made.code).toBe(0);
  const parts = read('stopped.json');
  expect(parts.status?.omitted).toMatch(/does not answer|cannot be reached|ECONNREFUSED/);
  expect(parts.database).toMatchObject({ rows: { endpoints: 1 } });
  expect(leaksOf(readFileSync(at('stopped.json'), 'utf8'))).toEqual([]);
});

if (whyNoOtherUsers !== undefined) console.info(`the service of another user is not tested: ${whyNoOtherUsers}`);
test.skipIf(whyNoOtherUsers !== undefined)(
  "root reads the host of another user's service with its rights",
  async () => {
    const others = mkdtempSync(join(tmpdir(), 'dke-support-other-'));
    const collect = async (): Promise<Bundle> => {
      rmSync(at('other.json'), { force: true });
      const args = ['support', 'bundle', '--config', join(others, 'dke.toml'), '--out', at('other.json')];
      expect((await runCommand([...args, '--confirm', 'write'], { cwd: folder })).code).toBe(0);
      return read('other.json');
    };
    try {
      cpSync(folder, others, { recursive: true });
      chmodSync(others, 0o755);
      chmodSync(join(others, relative(folder, server.dataDirectory)), 0o700);
      execFileSync('chown', ['-R', '65534:65534', others]);
      const log = join(others, 'dke.log');
      expect((await collect()).log).toContainEqual(expect.objectContaining({ msg: 'a line that help needs' }));

      // What the service's user puts there leads no further than this user comes.
      rmSync(log);
      symlinkSync(at('root-passphrase'), log);
      const { doctor, database, log: lines } = await collect();
      expect(lines?.omitted).toContain('EACCES');
      expect(database).toMatchObject({ rows: { endpoints: 1 } });
      expect(JSON.stringify(doctor)).not.toContain('must belong to user');
      expect(doctor).toContainEqual(expect.objectContaining({ id: 'data', state: 'ok' }));

      rmSync(log);
      execFileSync('mkfifo', [log]);
      expect((await collect()).log?.omitted).toMatch(/is not a file/);
    } finally {
      rmSync(others, { recursive: true });
    }
  },
);
