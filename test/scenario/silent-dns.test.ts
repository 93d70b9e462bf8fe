// A host whose DNS server does not answer: the agent, `dke doctor`, and the command say DNS, not
// load. Each program runs in a mount namespace of its own, where /etc/resolv.conf names a server
// that takes questions and is silent.
import { spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import { commandPath } from '../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-dns-'));
const address = '127.0.0.53';
let dns: Socket;
let why: string | undefined;
let questions = 0;

const run = async (args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> => {
  const bound = `mount --bind '${join(folder, 'resolv.conf')}' /etc/resolv.conf && exec "$@"`;
  const child = spawn('unshare', ['-m', 'sh', '-c', bound, 'sh', process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  await once(child, 'close');
  return { stdout, stderr };
};

beforeAll(async () => {
  writeFileSync(join(folder, 'resolv.conf'), `nameserver ${address}\noptions timeout:4 attempts:1\n`);
  dns = createSocket('udp4').on('message', () => (questions += 1));
  dns.bind(53, address);
  await Promise.race([once(dns, 'listening'), once(dns, 'error').then(([error]) => (why = String(error)))]);
  if (why === undefined) {
    const { stderr } = await run(['-e', '']);
    if (stderr !== '') why = stderr;
  }
  if (why !== undefined) console.log(`skipped: ${why}`);
});
afterAll(() => {
  dns.close();
  rmSync(folder, { recursive: true, force: true });
});

const guid = '3f0a7c52-aaaa-4bbb-8ccc-1234567890ab';
const writeConf = (): string => {
  const conf = join(folder, 'pkcs11.toml');
  const toml = `server_url = "https://keys.example/tde/v1/${guid}/erp"\naccess_token = "${guid}"\nlog_dir = "${folder}"\n`;
  writeFileSync(conf, toml, { mode: 0o600 });
  return conf;
};

test('the agent’s way to the service', async ({ skip }) => {
  if (why !== undefined) return skip(why);
  const child = resolve(import.meta.dirname, '../support/dns-child.ts');
  const { stdout } = await run([child, writeConf()]);
  expect(JSON.parse(stdout)).toMatchObject({ told: 'service-name', message: expect.stringContaining('DNS_TIMEOUT') });
  expect(questions).toBeGreaterThan(0);
});

test('dke doctor on a database host', async ({ skip }) => {
  if (why !== undefined) return skip(why);
  const { stdout } = await run([commandPath, 'doctor', '--conf', writeConf(), '-o', 'json']);
  const [{ results } = { results: [] }] = JSON.parse(stdout) as { readonly results: readonly CheckResult[] }[];
  const network = results.find(({ id }) => id === 'network');
  expect(network).toMatchObject({
    state: 'failed',
    evidence: expect.stringContaining('cannot be resolved (DNS_TIMEOUT)'),
  });
});

test('the way of the service to the OpenID provider', async ({ skip }) => {
  if (why !== undefined) return skip(why);
  const { stdout } = await run([resolve(import.meta.dirname, '../support/dns-open-id-child.ts')]);
  expect(stdout).toMatch(/^the name of the OpenID provider cannot be resolved \((?:EAI_AGAIN|DNS_TIMEOUT)\)$/);
});

test('the command', async ({ skip }) => {
  if (why !== undefined) return skip(why);
  writeFileSync(join(folder, 'token'), 'x', { mode: 0o600 });
  const { stderr } = await run([
    ...[commandPath, 'status', '--server', 'https://keys.example', '--token-file', join(folder, 'token')],
    ...['--timeout', '2'],
  ]);
  expect(stderr).toContain('DNS does not answer for the name in https://keys.example');
});
