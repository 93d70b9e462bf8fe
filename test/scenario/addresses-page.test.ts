// Every command of docs/addresses.md, run in the order of the page, beside a database that keeps
// running: another name, another port, and an authority whose root is not in the file. Only paths,
// names and ports are those of this test; systemctl is a script. What a reload takes and refuses
// before each step is what the page says.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { commandPath } from '../support/command.ts';
import { createGroup, openConsoleApi, registerApplication, writeProviderConfig } from '../support/console-api.ts';
import { freePort } from '../support/daemon.ts';
import { type Database, startDatabase } from '../support/database.ts';
import { endProcess, processesWith } from '../support/host.ts';
import { blocksOf } from '../support/page-commands.ts';
import { programAt } from '../support/program.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-addresses-'));
const at = (...names: readonly string[]): string => join(folder, ...names);
const socket = at('agent.sock');
let ports: readonly [before: number, after: number];
let authority: Authority;
let database: Database;
let handle: number;

const local = (text: string): string =>
  text
    .replaceAll('/etc/dke', at('etc'))
    .replaceAll('keys.example.com', 'localhost')
    .replaceAll('keys\\.example\\.com', 'localhost')
    .replaceAll('vault.example.com', '127.0.0.1')
    .replaceAll('vault\\.example\\.com', '127\\.0\\.0\\.1')
    .replaceAll('8443', String(ports[1]))
    .replaceAll('443', String(ports[0]))
    .replaceAll('-o dke ', '');
const run = (script: string): string => {
  const env = { ...process.env, PATH: `${at('bin')}:${process.env.PATH}`, DKE_AGENT_LOG_DIR: at('log') };
  const { status, stdout, stderr } = spawnSync('sh', ['-ex', '-c', local(script)], {
    ...{ cwd: at('work'), env, encoding: 'utf8' },
  });
  if (status !== 0) throw new Error(`${status}: ${stderr}\n${stdout}`);
  return stdout;
};
const log = (): string => readFileSync(at('server.log'), 'utf8');

const headings = ['Another name', 'Another port', 'A private authority'] as const;
const blocks = [...blocksOf('docs/addresses.md')];
/** The next block below this heading, which must be the next one of the page. */
const typeNext = (heading: (typeof headings)[number]): string => {
  const block = blocks.shift();
  expect(block?.heading).toBe(heading);
  return run((block?.commands ?? []).map(({ text }) => text).join('\n'));
};
/** The running database uses its key, whichever address its agent has. */
const useKey = async (): Promise<void> => {
  const sealed = await database.call('encrypt', { handle, iv: '00'.repeat(16), data: '11'.repeat(16) });
  expect(sealed.rv, database.complaints()).toBe('CKR_OK');
};

const issue = (by: Authority, name: string, names: readonly string[]): void => {
  const { certificate, key } = by.issue({ commonName: name, names, usage: 'serverAuth' });
  writeFileSync(at('work', `${name}.crt`), readFileSync(certificate));
  writeFileSync(at('work', `${name}.key`), readFileSync(key), { mode: 0o600 });
};

beforeAll(async () => {
  ports = [await freePort(), await freePort()];
  for (const name of ['bin', 'etc', 'work', 'data']) mkdirSync(at(name), { mode: 0o700 });
  authority = makeAuthority(folder, 'first authority');
  issue(authority, 'old-name', ['DNS:localhost']);
  issue(authority, 'both-names', ['DNS:localhost', 'IP:127.0.0.1']);
  issue(authority, 'new-name', ['IP:127.0.0.1']);
  const root = makeAuthority(folder, 'private root');
  issue(root.below('in between'), 'private', ['IP:127.0.0.1']);
  writeFileSync(at('work/root.pem'), root.pem);
  for (const kind of ['crt', 'key'])
    writeFileSync(at('etc', `tls.${kind}`), readFileSync(at('work', `old-name.${kind}`)), { mode: 0o600 });
  writeFileSync(at('etc/ca.pem'), authority.pem);
  writeFileSync(
    at('etc/dke.toml'),
    [
      `[server]\nhost = "127.0.0.1"\nport = ${ports[0]}\npublic_names = ["localhost"]\ndrain_seconds = 1`,
      `[data]\ndirectory = "${at('data')}"`,
      `[tls]\ncertificate = "${at('etc/tls.crt')}"\nkey = "${at('etc/tls.key')}"\n`,
    ].join('\n'),
  );
  const program = (name: string, text: string): void =>
    writeFileSync(at('bin', name), `#!/bin/sh\n${text}`, { mode: 0o755 });
  program('dke', `exec '${process.execPath}' '${commandPath}' "$@"\n`);
  program(
    'systemctl',
    `set -eu
pid='${at('pid')}' out='${at('out')}' log='${at('server.log')}'
stop() { kill "$(cat "$pid")"; while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.1; done; }
start() {
  : > "$out"
  ( '${process.execPath}' '${programAt('server/app/process.js', 'server/app/process.ts')}' --config '${at('etc/dke.toml')}' >> "$out" 2>> "$log" &
    echo $! > "$pid"; wait $! || true; echo ended >> "$out" ) > /dev/null 2>&1 < /dev/null &
  until grep -qE '^(listening on|ended)' "$out"; do sleep 0.1; done
  grep -q '^listening on' "$out" || { tail -n 3 "$log" >&2; exit 1; }
}
case $1 in
  start) start ;;
  restart) stop; start ;;
  stop) stop ;;
  # A reload ends when the service has said whether it takes the files.
  reload)
    before=$(grep -cE 'serving a certificate|was not replaced' "$log" || true)
    kill -HUP "$(cat "$pid")"
    until [ "$(grep -cE 'serving a certificate|was not replaced' "$log")" -gt "$before" ]; do sleep 0.1; done ;;
esac
`,
  );
  run('systemctl start dke-server');
  const [, token = ''] = /^administrator token.*: (\S+)$/m.exec(readFileSync(at('out'), 'utf8')) ?? [];
  const api = openConsoleApi({ url: `https://localhost:${ports[0]}`, caFile: at('etc/ca.pem') }, token);
  const issued = await registerApplication(api, 'erp', await createGroup(api, 'finance'));
  const config = writeProviderConfig(at('etc/pkcs11.toml'), issued, { caFile: at('etc/ca.pem'), logDir: at('log') });
  database = startDatabase({ config, socket, environment: { DKE_AGENT_LOG_DIR: at('log') } });
  expect((await database.call('open', { pin: 'x' })).rv, database.complaints()).toBe('CKR_OK');
  handle = (await database.call('generate', { label: 'pages' })).handle ?? 0;
});
afterAll(async () => {
  await database?.stop();
  for (const [pid] of processesWith(socket)) await endProcess(pid);
  if (existsSync(at('pid'))) run('systemctl stop dke-server');
  rmSync(folder, { recursive: true, force: true });
});

test('another name: the certificate has it first, and loses the old one last', async () => {
  // A certificate for the new name alone is too early: a reload keeps the current one.
  run('cp new-name.crt /etc/dke/tls.crt; cp new-name.key /etc/dke/tls.key; systemctl reload dke-server');
  expect(log()).toMatch(/it is not for localhost, but the current one is/);
  await useKey();
  typeNext('Another name');
  typeNext('Another name');
  // Its agent still has the old name, which the certificate is for, too.
  await useKey();
  expect(typeNext('Another name')).toMatch(/passed|ok/);
  await useKey();
  typeNext('Another name');
  await expect
    .poll(() => database.call('encrypt', { handle, iv: '00'.repeat(16), data: '11'.repeat(16) }))
    .toMatchObject({
      rv: 'CKR_OK',
    });
});

test('another port: a restart, and the address of each agent', async () => {
  run('! grep -q 8443 /etc/dke/dke.toml');
  typeNext('Another port');
  typeNext('Another port');
  await expect
    .poll(() => database.call('encrypt', { handle, iv: '00'.repeat(16), data: '11'.repeat(16) }))
    .toMatchObject({ rv: 'CKR_OK' });
});

test('a private authority: its root is named before a reload takes a chain without it', async () => {
  typeNext('A private authority');
  run('cp private.crt /etc/dke/tls.crt; cp private.key /etc/dke/tls.key; systemctl reload dke-server');
  expect(log()).toMatch(/its chain is not complete: the certificate of CN=private root is missing/);
  run('cp new-name.crt /etc/dke/tls.crt; cp new-name.key /etc/dke/tls.key');
  typeNext('A private authority');
  typeNext('A private authority');
  typeNext('A private authority');
  await useKey();
  const shown = execFileSync('openssl', ['s_client', '-connect', `127.0.0.1:${ports[1]}`, '-showcerts'], {
    input: '',
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  expect(shown).toMatch(/issuer=CN = in between/);
  expect(shown).not.toMatch(/^ *\d+ s:CN = private root/m);
  expect(blocks).toEqual([]);
});
