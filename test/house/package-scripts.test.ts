// The scripts of the packages run under two programs called update-alternatives, Debian's and Red
// Hat's (chkconfig), and under dash and bash.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packages } from '../../provider/packaging/packages.ts';
import { scriptletOf } from '../../provider/packaging/rpm.ts';
import { sharedFolder } from '../support/folders.ts';
import { files, read, root } from '../support/sources.ts';
import { installed } from '../support/tools.ts';

const scripts = ['server', 'provider'].flatMap((part) =>
  ['postinst', 'prerm', 'postrm'].map((name) => `${part}/packaging/${name}`),
);
/**
 * What both programs know: Red Hat's has no --quiet, and fails where it does not know an option.
 */
const shared = ['--install', '--slave', '--remove'];

test.each(scripts)('%s gives update-alternatives only options that both programs have', (path) => {
  const text = readFileSync(path, 'utf8').replaceAll(/\\\n/g, ' ');
  const calls = text.split('\n').filter((line) => /^\s*update-alternatives /.test(line));
  expect(calls).toHaveLength(path.endsWith('postrm') ? 0 : 1);
  const options = calls.flatMap((line) => line.match(/ --[a-z-]+/g) ?? []).map((option) => option.trim());
  expect(options.filter((option) => !shared.includes(option))).toEqual([]);
});

test.each(scripts)('%s never keeps a package from its removal', (path) => {
  const removals = readFileSync(path, 'utf8').match(/.*(--remove |systemctl .*disable).*/g) ?? [];
  expect(removals).toHaveLength(path.endsWith('prerm') ? 2 : 0);
  for (const line of removals) expect(line).toMatch(/\|\| true$/);
});

test.each(['dash', 'bash'])('%s reads every script', (shell) => {
  if (!installed(shell, shell)) return;
  for (const path of scripts) execFileSync(shell, ['-n', path]);
});

/**
 * Only what alternatives(8) of Red Hat documents. Another option, or the removal of what is not
 * registered, fails.
 */
const redHats = `#!/bin/sh
state=$STATE/alternatives
touch "$state"
while [ $# -gt 0 ]; do
  case $1 in
    --install) [ $# -ge 5 ] && case $2 in /*) ;; *) exit 2 ;; esac || exit 2
      grep -vF " $4" "$state" >"$state.new"; echo "$5 $4" >>"$state.new"; mv "$state.new" "$state"; shift 5 ;;
    --slave | --follower) [ $# -ge 4 ] || exit 2; shift 4 ;;
    --initscript | --family) shift 2 ;;
    --remove) [ $# -eq 3 ] && grep -qF " $3" "$state" || exit 2
      grep -vF " $3" "$state" >"$state.new"; mv "$state.new" "$state"; shift 3 ;;
    --keep-missing | --keep-foreign | --verbose | --test) shift ;;
    *) echo "alternatives: bad option $1" >&2; exit 2 ;;
  esac
done
`;
describe.each(['dash', 'bash'])('the scriptlets of RPM under %s', (shell) => {
  const folder = sharedFolder();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const [name, text] of Object.entries({ 'update-alternatives': redHats, 'systemd-sysusers': '#!/bin/sh\n' }))
    writeFileSync(join(bin, name), text, { mode: 0o755 });
  const run = (part: 'server' | 'provider', scriptlet: Parameters<typeof scriptletOf>[1], left: number): void =>
    void execFileSync(shell, ['-c', scriptletOf(join(root, part, 'packaging'), scriptlet), shell, String(left)], {
      env: { PATH: `${bin}:${process.env.PATH}`, STATE: folder, DPKG_ROOT: join(folder, 'root') },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  /** The registered commands in descending order of their paths. */
  const commands = (): readonly string[] =>
    readFileSync(join(folder, 'alternatives'), 'utf8')
      .split('\n')
      .flatMap((line) => /^\d+ (.*)$/.exec(line)?.[1] ?? [])
      .toSorted((one, other) => other.localeCompare(one));
  const [server, provider] = ['/usr/lib/dke-server/bin/dke', '/usr/lib/dke-provider/bin/dke'];

  test.runIf(installed(shell, shell))('share the command in the order of RPM: install, upgrade, remove each', () => {
    const agents = join(folder, 'root/run/dke-pkcs11');
    mkdirSync(agents, { recursive: true });
    writeFileSync(join(agents, 'agent.sock'), '');
    run('server', 'post', 1);
    run('provider', 'post', 1);
    expect(commands()).toEqual([server, provider]);
    // The new package's first, then those of the old one.
    for (const [scriptlet, left] of [
      ['post', 2],
      ['preun', 1],
      ['postun', 1],
    ] as const)
      run('server', scriptlet, left);
    expect(commands()).toEqual([server, provider]);
    for (const scriptlet of ['preun', 'postun'] as const) run('server', scriptlet, 0);
    expect(commands()).toEqual([provider]);
    run('provider', 'preun', 1);
    expect(existsSync(join(agents, 'agent.sock'))).toBe(true);
    for (const scriptlet of ['preun', 'postun'] as const) run('provider', scriptlet, 0);
    expect(commands()).toEqual([]);
    expect(existsSync(agents)).toBe(false);
    // A container may have made a folder in the place of the socket.
    mkdirSync(join(agents, 'agent.sock'), { recursive: true });
    run('provider', 'preun', 0);
    expect(existsSync(join(agents, 'agent.sock'))).toBe(true);
    // What is not registered keeps no package from its removal.
    for (const scriptlet of ['preun', 'postun'] as const) run('provider', scriptlet, 0);
  });
});

test('the packages of the programs have every page that a message names', () => {
  const named = files(['server', 'provider', 'addon'], '.ts', '.c', '.toml', '.service').flatMap((path) =>
    [...read(path).matchAll(/docs\/([a-z/-]+\.md)/g)].map(([, page = '']) => page),
  );
  expect(named.length).toBeGreaterThan(20);
  for (const name of ['dke-server', 'dke-provider']) {
    const spec = packages.find((each) => each.name === name);
    const texts = Object.keys(spec?.texts(() => '') ?? {});
    expect([...new Set(named)].filter((page) => !texts.includes(`/usr/share/doc/${name}/${page}`))).toEqual([]);
  }
});
