// Libraries of optional parts are loaded by a service that has these parts configured, and by no
// other one.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordModules } from '../support/loaded-modules.ts';
import { type ServerProcessOptions, startServerProcess } from '../support/server-process.ts';
import { onPostgresql } from '../support/test-store.ts';

// Not the bundle that other tests run: in it, every library has the name of the bundle.
const program = [resolve(import.meta.dirname, '../../server/app/process.ts')];
const optional = [
  '@aws-sdk/client-kms',
  '@opentelemetry/sdk-trace',
  '@simplewebauthn/server',
  'nodemailer',
  'openid-client',
  'pg',
  'undici',
] as const;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dke-optional-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const loadedBy = async (options: ServerProcessOptions): Promise<readonly string[]> => {
  const modules = recordModules(folder);
  const server = await startServerProcess({ ...options, program, environment: modules.environment });
  try {
    expect(await server.stop()).toBe(0);
    const { packages } = modules.read(server.child.pid);
    return optional.filter((name) => packages.has(name));
  } finally {
    await server.remove();
  }
};
const always = onPostgresql ? ['pg'] : [];

test('a service with the defaults, whose address has no name, loads none', async () => {
  expect(await loadedBy({})).toEqual(always);
});

test('with a name, people can have passkeys', async () => {
  expect(await loadedBy({ publicUrl: 'https://keys.example' })).toEqual([...always, '@simplewebauthn/server'].sort());
});

test('each part that is configured has its own library', async () => {
  const token = join(folder, 'token');
  writeFileSync(token, 'secret', { mode: 0o600 });
  const toml = [
    '[audit]',
    `sinks = [{ name = "lake", type = "https", url = "https://127.0.0.1:9/", token_file = "${token}" }]`,
    '[notifications]',
    'targets = [{ name = "mail", type = "email", host = "127.0.0.1", port = 9, tls = "starttls", from = "a@dke.example", to = ["b@dke.example"] }]',
    '[telemetry]',
    'endpoint = "https://127.0.0.1:9"',
    '[oidc]',
    'issuer = "https://127.0.0.1:9"',
    'client_id = "dke"',
    '',
  ].join('\n');
  expect(await loadedBy({ toml })).toEqual(
    [...always, '@opentelemetry/sdk-trace', 'nodemailer', 'openid-client', 'undici'].sort(),
  );
});
