// A person at the command: signs in with a password and a one-time code, works with a session of
// their own, and signs out.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandPath, runCommand } from '../support/command.ts';
import { goodPassword } from '../support/people.ts';
import { openScriptedService } from '../support/scripted-service.ts';
import { type Site, startSite } from '../support/site.ts';
import { codeOf } from '../support/totp.ts';

let site: Site;
let file: string;
const dke = (args: readonly string[], input = '') =>
  runCommand([...args, '-o', 'json'], {
    environment: {
      DKE_SERVER: site.server.url,
      DKE_CA_FILE: site.server.caFile,
      XDG_CONFIG_HOME: join(site.folder, 'config'),
    },
    input,
  });
/** Sends a request as a browser does; returns the session cookie too. Throws when it is refused. */
const browse = async (
  path: string,
  body: object,
  cookie = '',
): Promise<{ cookie: string; body: Record<string, string> }> => {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(new URL(path, site.server.url), {
      method: 'POST',
      ca: readFileSync(site.server.caFile),
      agent: false,
      headers: { origin: site.server.url, cookie, 'content-type': 'application/json' },
    });
    sent.on('response', resolve).on('error', reject).end(JSON.stringify(body));
  });
  let text = '';
  for await (const part of answer) text += String(part);
  if ((answer.statusCode ?? 0) > 299) throw new Error(`${path}: ${answer.statusCode} ${text}`);
  const set = answer.headers['set-cookie']?.[0]?.split(';')[0];
  return { cookie: set ?? cookie, body: JSON.parse(text) as Record<string, string> };
};
const invite = async (name: string, role: string) => {
  const { invitation } = await site.api.call<{ invitation: { token: string } }>('POST', '/api/users', {
    name,
    grants: [{ role, scope: null }],
  });
  return browse('/api/session/invitation', { invitation: invitation.token, password: goodPassword });
};

let secret = '';
beforeAll(async () => {
  site = await startSite();
  file = join(site.folder, 'config/dke/session.json');
  await invite('maria', 'auditor');
  const joined = await invite('otto', 'auditor');
  const begun = await browse('/api/profile/totp', { name: 'phone' }, joined.cookie);
  secret = begun.body.secret ?? '';
  await browse(`/api/profile/totp/${begun.body.id}/confirm`, { code: codeOf(secret) }, joined.cookie);
});
afterAll(() => site?.end());

test('signs in with the password from a descriptor, and is who acts until signed out', async () => {
  const signedIn = await dke(['login', 'maria', '--password-fd', '0'], `${goodPassword}\n`);
  expect([signedIn.stderr, signedIn.code]).toEqual(['', 0]);
  expect(signedIn.stdout).not.toContain(goodPassword);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
  expect(readFileSync(file, 'utf8')).not.toContain(goodPassword);
  expect(JSON.parse((await dke(['token', 'whoami'])).stdout).name).toBe('maria');
  // What her roles do not give is refused, not because of the session.
  expect((await dke(['vault', 'create', 'mine'])).stderr).toContain('vaults:manage');
  const kept = (JSON.parse(readFileSync(file, 'utf8')) as Record<string, { session: string }>)[site.server.url]
    ?.session;
  expect((await dke(['logout'])).code).toBe(0);
  expect(existsSync(file)).toBe(false);
  await expect(browse('/api/profile/totp', { name: 'x' }, `__Host-dke-session=${kept}`)).rejects.toThrow(/401/);
  expect((await dke(['token', 'whoami'])).stderr).toContain('dke login');
  expect((await dke(['logout'])).code).toBe(10);
});

test('a wrong password, a missing or wrong code, and no terminal end it, and nothing is kept', async () => {
  expect((await dke(['login', 'maria', '--password-fd', '0'], 'not it\n')).code).not.toBe(0);
  expect((await dke(['login', 'otto', '--password-fd', '0'], `${goodPassword}\n`)).stderr).toContain('code');
  expect((await dke(['login', 'otto', '--password-fd', '0'], `${goodPassword}\n000000\n`)).code).not.toBe(0);
  expect((await dke(['login', 'maria', '--password-fd', '1'], '')).stderr).toContain('not a readable file descriptor');
  expect(existsSync(file)).toBe(false);
});

test.each([
  ['a file that is not ours', (path: string) => writeFileSync(path, '{"a":', { mode: 0o600 }), 2, 'remove it'],
  ['a folder in its place', (path: string) => mkdirSync(path, 0o700), 2, 'file'],
  ['no folder', (path: string) => rmSync(dirname(path), { recursive: true }), 2, 'cannot be written'],
])('a sign-in that cannot be kept begins nothing: %s', async (name, spoil, code, told) => {
  const config = join(site.folder, `spoilt-${name.replaceAll(' ', '-')}`);
  mkdirSync(join(config, 'dke'), { recursive: true, mode: 0o700 });
  spoil(join(config, 'dke/session.json'));
  if (name === 'no folder') writeFileSync(join(config, 'dke'), 'a file');
  const sessions = async () => (await site.api.call<{ items: unknown[] }>('GET', '/api/sessions')).items.length;
  const before = await sessions();
  for (const args of [['login', 'maria', '--password-fd', '0'], ['login']]) {
    const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, XDG_CONFIG_HOME: config };
    const ended = await runCommand(args, { environment, input: `${goodPassword}\n` });
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(told)]);
    expect(ended.stderr).not.toContain('enter the code');
  }
  expect(await sessions()).toBe(before);
});

test('asks for the second factor, and takes a one-time code', async () => {
  const signedIn = await dke(['login', 'otto', '--password-fd', '0'], `${goodPassword}\n${codeOf(secret, 1)}\n`);
  expect([signedIn.stderr, signedIn.code]).toEqual(['', 0]);
  expect(JSON.parse((await dke(['token', 'whoami'])).stdout).name).toBe('otto');
  expect((await dke(['logout'])).code).toBe(0);
});

/**
 * The command at a pseudo terminal that echoes input unless echo is turned off. Each answer is
 * typed as soon as its question stands there. Answers everything that was to be seen, and the exit
 * code.
 */
const atTerminal = async (
  user: string,
  answers: readonly (readonly [question: string, typed: string])[],
): Promise<{ readonly code: number; readonly seen: string }> => {
  const command = `exec '${process.execPath}' '${commandPath}' login ${user} -o json`;
  const child = spawn('script', ['--quiet', '--return', '--echo', 'always', '--command', command, '/dev/null'], {
    env: {
      ...process.env,
      DKE_TOKEN: undefined,
      DKE_TOKEN_FILE: undefined,
      DKE_SERVER: site.server.url,
      DKE_CA_FILE: site.server.caFile,
      XDG_CONFIG_HOME: join(site.folder, 'config'),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = once(child, 'close');
  let seen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
  });
  for (const [question, typed] of answers) {
    await expect.poll(() => seen).toContain(question);
    child.stdin.write(typed);
  }
  const [code] = (await gone) as [number];
  return { code, seen };
};

test('asks on the terminal, and shows nothing of what is typed there', async () => {
  const slip = `${goodPassword}!\x7f\r`;
  const { code, seen } = await atTerminal('maria', [['Password: ', slip]]);
  expect([code, seen.includes('"user"')]).toEqual([0, true]);
  expect(seen).not.toContain(goodPassword.slice(0, 4));
  expect(JSON.parse((await dke(['token', 'whoami'])).stdout).name).toBe('maria');
  expect((await dke(['logout'])).code).toBe(0);
});

test('is given up on the terminal with Ctrl-C, half-way too, and nothing is kept', async () => {
  const atOnce = await atTerminal('otto', [['Password: ', '\x03']]);
  expect([atOnce.code === 0, atOnce.seen]).toEqual([false, expect.stringContaining('nothing was changed')]);
  const later = await atTerminal('otto', [
    ['Password: ', `${goodPassword}\r`],
    ['One-time code, or a recovery code: ', '4711-0815\x03'],
  ]);
  expect([later.code === 0, later.seen]).toEqual([false, expect.stringContaining('nothing was changed')]);
  expect(later.seen).not.toMatch(new RegExp(`${goodPassword.slice(0, 4)}|4711`));
  expect(existsSync(file)).toBe(false);
});

test('signs in through a browser: shows address and code, keeps the token once it is approved, and ends it', async () => {
  const browser = await browse('/api/session', { user: 'maria', password: goodPassword });
  const child = spawn(process.execPath, [commandPath, 'login', '--hours', '2', '-o', 'json'], {
    env: {
      ...process.env,
      DKE_TOKEN: undefined,
      DKE_TOKEN_FILE: undefined,
      DKE_SERVER: site.server.url,
      DKE_CA_FILE: site.server.caFile,
      XDG_CONFIG_HOME: join(site.folder, 'config'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const gone = once(child, 'close');
  let [shown, told] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    told += text;
  });
  await expect.poll(() => told).toContain('another person');
  const [, userCode = ''] = /enter the code (\S+)/.exec(told) ?? [];
  expect(told).toContain(`/device#${userCode}`);
  const found = await browse('/api/device-sign-in/find', { userCode }, browser.cookie);
  expect(found.body).toMatchObject({ hours: 2, roles: null });
  await browse('/api/device-sign-in/approve', { userCode, hours: 2 }, browser.cookie);
  expect((await gone)[0]).toBe(0);
  const kept = (JSON.parse(readFileSync(file, 'utf8')) as Record<string, { token: string }>)[site.server.url];
  expect([statSync(file).mode & 0o777, kept?.token]).toEqual([0o600, expect.stringMatching(/^dket_/)]);
  for (const output of [shown, told]) expect(output).not.toContain(kept?.token);
  expect(JSON.parse(shown)).toMatchObject({ user: 'maria' });
  expect(JSON.parse((await dke(['token', 'whoami'])).stdout).name).toContain('maria');
  expect((await dke(['logout'])).code).toBe(0);
  expect(existsSync(file)).toBe(false);
  const after = await runCommand(['token', 'whoami', '--token-file', '-', '-o', 'json'], {
    environment: { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile },
    input: `${kept?.token}\n`,
  });
  expect([after.code === 0, after.stderr]).toEqual([false, expect.stringContaining('revoked')]);
});

test('a command that waits for a browser still waits when the service was away for a while', async () => {
  const scripted = await openScriptedService();
  const started = { deviceCode: 'd'.repeat(43), userCode: 'BCDF-GHJK', url: `${scripted.url}/device` };
  const pending = { state: 'pending', intervalSeconds: 0, issued: null };
  const issued = { record: { id: 'token', expiresAt: null }, token: 'dket_token' };
  try {
    scripted.script(
      { body: { ...started, completeUrl: started.url, expiresAt: '2027-01-31T00:00:00Z', intervalSeconds: 0 } },
      ...['lost' as const, 'cut' as const],
      { status: 502, headers: { 'content-type': 'text/html' }, body: '<html>' },
      { status: 503, body: { code: 'unavailable', detail: 'starts', requestId: 'r' } },
      ...[{ body: pending }, 'lost' as const, { body: { state: 'issued', intervalSeconds: 0, user: 'maria', issued } }],
    );
    writeFileSync(join(site.folder, 'scripted.pem'), scripted.ca);
    const { code, stdout, stderr } = await runCommand(['login', '-o', 'json'], {
      environment: {
        DKE_SERVER: scripted.url,
        DKE_CA_FILE: join(site.folder, 'scripted.pem'),
        XDG_CONFIG_HOME: join(site.folder, 'scripted'),
      },
    });
    expect([code, stderr]).toEqual([0, expect.stringContaining('BCDF-GHJK')]);
    expect(JSON.parse(stdout)).toMatchObject({ user: 'maria' });
    expect(scripted.requests).toHaveLength(8);
  } finally {
    await scripted.close();
  }
});

test('a command that a person refuses in the browser ends, and keeps nothing', async () => {
  const browser = await browse('/api/session', { user: 'maria', password: goodPassword });
  const child = spawn(process.execPath, [commandPath, 'login'], {
    env: {
      ...process.env,
      DKE_TOKEN_FILE: undefined,
      DKE_SERVER: site.server.url,
      DKE_CA_FILE: site.server.caFile,
      XDG_CONFIG_HOME: join(site.folder, 'config'),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const gone = once(child, 'close');
  let told = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    told += text;
  });
  await expect.poll(() => told).toContain('another person');
  const [, userCode = ''] = /enter the code (\S+)/.exec(told) ?? [];
  await browse('/api/device-sign-in/refuse', { userCode }, browser.cookie);
  expect([(await gone)[0] === 0, told, existsSync(file)]).toEqual([
    false,
    expect.stringContaining('the sign-in was refused'),
    false,
  ]);
});
