// Every command of docs/operations.md and docs/upgrade.md, run in the order of the page on a real
// service: first day, every day, and the disasters, which the test makes before their section. The
// commands are those of the page; only paths and the address are those of this test, and systemctl,
// journalctl and sudo are small scripts that start, stop and read the service.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandPath } from '../support/command.ts';
import { freePort } from '../support/daemon.ts';
import { installed } from '../support/tools.ts';

/** The sections of a page that have commands: those of each block. */
const sectionsOf = (page: string) =>
  readFileSync(resolve(import.meta.dirname, '../../docs', page), 'utf8')
    .split(/\n##+ /)
    .slice(1)
    .map((text) => ({
      title: text.slice(0, text.indexOf('\n')),
      blocks: [...text.matchAll(/```console\n([\s\S]*?)```/g)].map(([, block = '']) =>
        block
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => line.replace(/^[#$] /, '')),
      ),
    }))
    .filter(({ blocks }) => blocks.length > 0);
const sections = sectionsOf('operations.md');

let host: string;
let port: number;
const at = (...names: readonly string[]): string => join(host, ...names);

/** The state before a section, as an operator meets it. */
const disasters: Readonly<Record<string, () => Promise<void>>> = {
  'The root key file is lost': async () => unlinkSync(at('lib/data/root.key')),
  'The machine is lost': async () => {
    // Revoked since the backup: the quarantine lists it.
    await run(['dke vault create "made since the backup"']);
    await run(['systemctl stop dke-server', 'rm -r /var/lib/dke/data']);
  },
};
/** What a section's output must have. */
const shows: Readonly<Record<string, RegExp>> = {
  'The first day': /"?snapshot"?/,
  'Every day': /valid +true/,
  'An older database': /vault\.created/,
  'No administrator can sign in': /ada/,
};

const script = (name: string, text: string): void => {
  writeFileSync(at('bin', name), `#!/bin/sh\n${text}`);
  chmodSync(at('bin', name), 0o755);
};

const local = (command: string): string =>
  command
    .replaceAll('/etc/dke', at('etc'))
    .replaceAll('/var/lib/dke', at('lib'))
    .replaceAll('/var/backups/dke', at('backups'))
    .replaceAll('https://localhost', `https://127.0.0.1:${port}`)
    .replaceAll('install -o dke ', 'install ')
    .replaceAll(' && chown dke: .', '')
    .replaceAll('install -d -o dke -g dke ', 'install -d ')
    .replaceAll('install -d -o dke ', 'install -d ');

/** The commands in one shell, each of which must succeed; answers what they print. */
const run = (commands: readonly string[]): Promise<string> => {
  const environment: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: `${at('bin')}:${process.env.PATH ?? ''}`,
    DKE_SERVER: `https://127.0.0.1:${port}`,
    DKE_CA_FILE: at('lib/data/tls.crt'),
    DKE_TOKEN_FILE: at('lib/administrator-token'),
  };
  const child = spawn('sh', ['-e', '-x', '-c', commands.map(local).join('\n')], {
    cwd: at('work'),
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let complaints = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    out += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    complaints += part;
  });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => (code === 0 ? done(out) : fail(new Error(`${code}: ${complaints}\n${out}`))));
  });
};

beforeAll(async () => {
  installed('jq', 'jq');
  installed('openssl', 'openssl');
  host = mkdtempSync(join(tmpdir(), 'dke-operations-'));
  port = await freePort();
  for (const name of ['bin', 'etc', 'lib', 'work', 'audit']) mkdirSync(at(name), { mode: 0o700 });
  writeFileSync(
    at('etc/dke.toml'),
    [
      `[server]\nhost = "127.0.0.1"\nport = ${port}\npublic_names = ["localhost", "127.0.0.1"]\ndrain_seconds = 1`,
      `[data]\ndirectory = "${at('lib/data')}"`,
      `[[audit.sinks]]\nname = "file"\ntype = "file"\npath = "${at('audit/audit.ndjson')}"\n`,
    ].join('\n'),
  );
  script('dke', `exec ${process.execPath} ${commandPath} "$@"\n`);
  script('sudo', '[ "$1" = -u ] && [ "$2" = dke ]\nshift 2\nexec "$@"\n');
  // The version stays the same: other tests cover migrations to a new schema.
  script('apt-get', '[ "$1" = install ] && [ "$#" = 2 ]\n');
  script('journalctl', `cat ${at('journal')}\n`);
  // Stands in for systemd, and starts the server as the unit does.
  script(
    'systemctl',
    `case "$1" in
stop) read pid <${at('pid')}; kill "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done ;;
reload)
  read pid <${at('pid')}
  before=$(grep -c 'serving a certificate' ${at('log')})
  kill -HUP "$pid"
  until [ "$(grep -c 'serving a certificate' ${at('log')})" -gt "$before" ]; do sleep 0.1; done ;;
start | enable)
  : >${at('started')}
  ( dke server --config ${at('etc/dke.toml')} --token-out ${at('lib/administrator-token')} >>${at('started')} 2>>${at('log')} &
    echo $! >${at('pid')}; wait $!; echo ended >>${at('started')} ) >/dev/null 2>&1 </dev/null &
  until grep -qE '^(listening on|ended)' ${at('started')}; do sleep 0.1; done
  cat ${at('started')} >>${at('journal')}
  grep -q '^listening on' ${at('started')} ;;
esac
`,
  );
});
afterAll(async () => {
  if (host === undefined) return;
  if (existsSync(at('pid'))) await run(['systemctl stop dke-server']);
  rmSync(host, { recursive: true, force: true });
});

test('the page has the sections that are prepared here', () => {
  const titles = sections.map(({ title }) => title);
  expect(titles).toEqual(expect.arrayContaining([...Object.keys(disasters), ...Object.keys(shows)]));
});

test.each(sections)('$title', async ({ title, blocks }) => {
  await disasters[title]?.();
  const out = await run(blocks.flat());
  expect(out).toMatch(shows[title] ?? /^/);
});

test('docs/upgrade.md: an upgrade, its rollback, and the removal of the copy', async () => {
  const upgradePage = sectionsOf('upgrade.md');
  expect(upgradePage.map(({ title, blocks }) => [title, blocks.length])).toEqual([
    ['Upgrade on SQLite', 2],
    ['Rollback', 1],
  ]);
  const [[upgrade = [], removal = []] = [], [rollback = []] = []] = upgradePage.map(({ blocks }) => blocks);
  const vaults = () => run(['dke vault list']);
  await run(['dke vault create "before the upgrade"']);
  expect(await run(upgrade)).toMatch(/erasure/);
  await run(['dke vault create "after the upgrade"']);
  await run(rollback);
  const left = await vaults();
  expect(left).toContain('before the upgrade');
  expect(left).not.toContain('after the upgrade');
  // The service accepts changes, so it is not in quarantine.
  await run(['dke vault create "after the rollback"']);
  await run([...upgrade, ...removal]);
  expect(await vaults()).toContain('after the rollback');
  expect(existsSync(at('lib-before'))).toBe(false);
});
