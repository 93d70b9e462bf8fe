// What commands send, and what they show, against a service that a test scripts.
import { existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { makeProgramFor } from '../../../server/cli/program.ts';
import { sharedFolder } from '../../support/folders.ts';
import { openScriptedService, type ScriptedService } from '../../support/scripted-service.ts';

let service: ScriptedService;
const folder = sharedFolder();
let printed = '';
beforeAll(async () => {
  service = await openScriptedService();
  writeFileSync(join(folder, 'ca.pem'), service.ca);
  writeFileSync(join(folder, 'token'), 'dket_token\n', { mode: 0o600 });
});
afterAll(() => service.close());
afterEach(() => vi.restoreAllMocks());

/** Runs a command to its end; returns its requests. */
const dke = async (...words: readonly string[]): Promise<readonly string[]> => {
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const options = ['--server', service.url, '--ca-file', join(folder, 'ca.pem'), '--token-file', join(folder, 'token')];
  const all = [...options, ...words];
  await (await makeProgramFor('1', all)).parseAsync(['node', 'dke', ...all]);
  return service.requests.map(({ method, path, body }) => `${method} ${path} ${body}`.trim());
};

const user = { id: 'u', name: 'ada', grants: [{ role: 'auditor', scope: null }], factors: [], state: 'enabled' };

test('a secret is written only to its file, and the options of the file are not part of the request', async () => {
  const invitation = {
    token: 'once',
    url: 'https://dke.example/invitation#once',
    expiresAt: '2026-03-01T09:30:00.000Z',
  };
  service.script({ status: 201, body: { user, invitation, mailed: null } });
  const out = join(folder, 'invitation');
  const sent = await dke('user', 'create', 'ada', '--role', 'auditor', '--email', 'ada@dke.example', '--out', out);
  expect(sent).toEqual([
    'POST /api/users {"name":"ada","email":"ada@dke.example","grants":[{"role":"auditor","scope":null}]}',
  ]);
  expect(readFileSync(out, 'utf8')).toBe(`${invitation.url}\n`);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  expect(printed).not.toContain('#once');
  expect(printed).toContain('ada');
});

test('a dry run shows the plan and changes nothing; the name that was confirmed is sent', async () => {
  const planned = {
    tenant: { id: 't', name: 'acme', state: 'deleted' },
    impact: { vaults: 0, endpoints: 0, applications: 0, keys: 2, tokens: 1, copies: 0 },
  };
  const id = '01981d2c-7c1f-7b35-9a04-52a1be40c0de';
  service.script({ body: planned });
  expect(await dke('tenant', 'purge', id, '--dry-run')).toEqual([`POST /api/tenants/${id}/purge?dryRun=true {}`]);
  expect(printed).toContain('acme');
  service.script({ body: planned });
  expect(await dke('tenant', 'purge', id, '--confirm', 'acme')).toEqual([
    `POST /api/tenants/${id}/purge?dryRun=true {}`,
    `POST /api/tenants/${id}/purge {"confirm":"acme"}`,
  ]);
  service.script({ body: planned });
  await expect(dke('tenant', 'purge', id, '--confirm', 'other')).rejects.toThrow();
  expect(service.requests).toHaveLength(1);
});

test('an answer that says what is wrong is shown, and the command fails', async () => {
  const body = { valid: false, findings: ['minute 1 was changed'], dropped: 0 };
  service.script({ body });
  await expect(dke('endpoint', 'verify-requests')).rejects.toMatchObject({
    exitClass: 'checks-failed',
    message: expect.stringContaining('minute 1 was changed'),
  });
  expect(printed).toContain('minute 1 was changed');
});

test('an export is written as it comes; a part of it is removed when the connection ends', async () => {
  service.script({ body: 'one\ntwo\n' });
  const out = join(folder, 'inventory');
  expect(await dke('key', 'export', '--state', 'active', '--out', out)).toEqual([
    'GET /api/keys/export?format=ndjson&state=active',
  ]);
  expect(readFileSync(out, 'utf8')).toBe('one\ntwo\n');
  service.script('cut');
  const part = join(folder, 'part');
  await expect(dke('key', 'export', '--out', part)).rejects.toMatchObject({ exitClass: 'unreachable' });
  expect(statSync(part, { throwIfNoEntry: false })).toBeUndefined();
});

test('a call whose connection is lost is repeated, under the same key', async () => {
  service.script('lost', { status: 201, body: { id: 'v', name: 'orders' } });
  await dke('vault', 'create', 'orders');
  const keys = service.requests.map(({ headers }) => headers['idempotency-key']);
  expect(keys).toHaveLength(2);
  expect(new Set(keys).size).toBe(1);
});

test('a list that has no pages is read without a limit, to find a name', async () => {
  const node = { id: '01981d2c-7c1f-7b35-9a04-52a1be40c0de', name: 'one', state: 'up' };
  service.script({ body: { items: [node] } }, { body: node });
  expect(await dke('node', 'drain', 'one')).toEqual(['GET /api/nodes', `POST /api/nodes/${node.id}/drain`]);
});

test('a sign-in whose answer sets no session is not kept', async () => {
  vi.stubEnv('XDG_CONFIG_HOME', folder);
  writeFileSync(join(folder, 'password'), 'a long passphrase\n', { mode: 0o600 });
  service.script({ body: { id: 'u', missing: null, expiresAt: null } });
  const login = dke('login', 'ada', '--password-fd', String(openSync(join(folder, 'password'), 'r')));
  await expect(login).rejects.toMatchObject({ exitClass: 'unreachable' });
  expect(existsSync(join(folder, 'dke/session.json'))).toBe(false);
  vi.unstubAllEnvs();
});
