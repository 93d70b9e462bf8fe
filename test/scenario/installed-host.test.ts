// The life of a host from its installation to its removal, under systemd itself: the unit, its
// user, folders and modes are those of the package, and every command is typed as the pages print
// it, also those that people at a trusted machine type, which is here the same one. Debian's
// package lives through all of it. RPM's two are installed in the same system, upgraded and
// removed: by RPM, with its dependencies, and with Red Hat's `alternatives` where its source is
// here (test/support/rpm-system.ts). Between them, every command that DKE offers anywhere is run
// beside a new service of the host, or is listed with the reason why it is refused here.
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import { furnish, openWorld, runOffered, type World } from '../support/command-runs.ts';
import { offeredCatalogue, offeredInBlocks } from '../support/command-site.ts';
import { bootFreshSystem, type FreshSystem } from '../support/fresh-system.ts';
import { installCommands } from '../support/installed-commands.ts';
import { copyProject, makePackages, project } from '../support/package-builds.ts';
import { blocksOf } from '../support/page-commands.ts';
import { makeRedHatAlternatives, makeSystemPackage } from '../support/rpm-system.ts';
import { installed } from '../support/tools.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-installed-host-'));
const canMake = process.getuid?.() === 0 && installed('dpkg', 'dpkg-deb') && installed('rpm', 'rpmbuild');
const boot = (name: string) => bootFreshSystem(join(folder, name), ['keys.example.com']);
const booted = canMake ? await boot('host') : 'packages cannot be made';
if (typeof booted === 'string') console.info(`an installed host is not tested: ${booted}`);
let host = booted as FreshSystem;

const next = '1.0.1';
beforeAll(() => {
  if (typeof booted === 'string') return;
  copyProject(join(folder, 'next'), next);
  const builds = [
    [project, 'packages'],
    [join(folder, 'next'), 'packages-next'],
  ] as const;
  for (const [root, to] of builds)
    for (const part of ['server', 'provider']) {
      const place = join(folder, `${to}-${part}`);
      makePackages(root, place, '--only', `dke-${part}`);
      for (const name of readdirSync(place).filter((each) => /\.(deb|rpm)$/.test(each)))
        cpSync(join(place, name), join(host.folder, 'root', name));
    }
});

let executed = 0;
/** Ways to call commands that a page has. */
const typed = new Set<string>();
const catalogue = (await offeredCatalogue()).toSorted(([one], [other]) => (one < other ? -1 : 1));
afterAll(async () => {
  if (typeof booted !== 'string') {
    console.info(`on an installed host, ${executed} commands of pages were executed as printed`);
    await host.end();
  }
  rmSync(folder, { recursive: true, force: true });
});

/** What a page leaves to its reader. */
const places: readonly (readonly [printed: string, typed: string])[] = [
  [
    'editor /etc/dke/dke.toml',
    `sed -i 's/"localhost", "127.0.0.1"/"keys.example.com", "localhost"/' /etc/dke/dke.toml`,
  ],
  // A new machine has them where the administrator has put them.
  [
    '/var/backups/dke/first.dkebackup dke-audit.key recovery.key recovery-passphrase /var/lib/dke/root-backup.key /var/lib/dke/root-passphrase',
    'first.dkebackup dke-audit.key recovery.key recovery-passphrase root-backup.key root-passphrase',
  ],
  ['dke-server_1.1.0_amd64.deb', `dke-server_${next}_amd64.deb`],
  // A downgrade is asked about.
  ['apt-get install ./dke-server_1.0.0', 'apt-get install --allow-downgrades ./dke-server_1.0.0'],
];
const type = async (script: string): Promise<string> => {
  const { code, out, complaints } = await host.type('root', script);
  if (code !== 0) throw new Error(`${code}\n${complaints}\n${out}`);
  return out;
};
/** All commands below a heading of a page. */
const typePage = async (page: string, heading: string): Promise<string> => {
  let out = await type('cd ~');
  const blocks = blocksOf(page).filter((each) => each.heading === heading);
  expect(blocks.length).toBeGreaterThan(0);
  for (const name of await offeredInBlocks(
    page,
    blocks.map(({ line }) => line),
  ))
    typed.add(name);
  for (const { text } of blocks.flatMap(({ commands }) => commands)) {
    out += await type(places.reduce((all, [printed, typed]) => all.replaceAll(printed, typed), text));
    executed += 1;
  }
  return out;
};

/** The machine is gone; what was stored elsewhere is copied to a new one with the package. */
const loseMachine = async (): Promise<void> => {
  const lost = host;
  const next = await boot('new-machine');
  if (typeof next === 'string') throw new Error(next);
  const stored = ['first.dkebackup', 'root-backup.key', 'root-passphrase', 'administrator-token'].map((name) =>
    join(name.endsWith('.dkebackup') ? '/var/backups/dke' : '/var/lib/dke', name),
  );
  const ofPeople = ['dke-audit.key', 'recovery.key', 'recovery-passphrase'].map((name) => `/root/${name}`);
  for (const path of [...stored, ...ofPeople])
    cpSync(join(lost.folder, path), join(next.folder, 'root', basename(path)));
  for (const name of readdirSync(join(lost.folder, 'root')).filter((each) => /\.(deb|rpm)$/.test(each)))
    cpSync(join(lost.folder, 'root', name), join(next.folder, 'root', name));
  // Variables of the administrator.
  const { out } = await lost.run(['cat', '/tmp/session-root']);
  await next.run(['tee', '/tmp/session-root'], out);
  await lost.end();
  host = next;
  await type('cd ~; apt-get install ./dke-server_1.0.0_amd64.deb');
};

const operations = 'docs/operations.md';
interface Step {
  readonly page: string;
  readonly heading: string;
  /** What has happened before. */
  readonly before?: string | (() => Promise<unknown>);
  readonly shows?: RegExp;
}
const life: readonly Step[] = [
  { page: 'docs/install.md', heading: 'The service', shows: /health\.healthy +true[\s\S]*passed all checks/ },
  { page: operations, heading: 'The first day', shows: /authentic +true/ },
  { page: 'docs/backup.md', heading: 'Every night', shows: /"removed"|removed +-/ },
  { page: operations, heading: 'Every day', shows: /valid +true/ },
  { page: operations, heading: 'Rotating the keys of sessions and API tokens' },
  { page: operations, heading: 'Renewing the certificate' },
  { page: operations, heading: 'The root key file is lost', before: 'rm /var/lib/dke/data/root.key' },
  {
    ...{ page: operations, heading: 'The machine is lost', shows: /passed all checks/ },
    before: async () => {
      await type('dke vault create "since the backup"');
      await loseMachine();
    },
  },
  {
    ...{ page: operations, heading: 'An older database', shows: /quarantined +false/ },
    // The administrator's own.
    before: 'install -m 600 ~/administrator-token /var/lib/dke/administrator-token',
  },
  { page: operations, heading: 'No administrator can sign in', shows: /ada/ },
  {
    page: 'docs/upgrade.md',
    heading: 'Upgrade on SQLite',
    before: 'dke vault create before',
    shows: /version +1\.0\.1/,
  },
];

describe.runIf(typeof booted !== 'string')('a host with the package and systemd', () => {
  test.each(life)('$page: $heading', async ({ page, heading, before, shows }) => {
    if (typeof before === 'string') await type(before);
    else await before?.();
    expect(await typePage(page, heading)).toMatch(shows ?? /^/);
  });

  test('docs/upgrade.md: a rollback takes the data back, and the former version serves it', async () => {
    await type(`systemctl stop dke-server; install -d -m 700 /var/lib/dke-before; cp -a /var/lib/dke/. /var/lib/dke-before/
      systemctl start dke-server; dke vault create after`);
    await typePage('docs/upgrade.md', 'Rollback');
    const vaults = await type('dke --version; dke vault list; dke vault create "changes are possible" > /dev/null');
    expect(vaults).toMatch(/^1\.0\.0\b/m);
    expect(vaults).toMatch(/\bbefore\b/);
    expect(vaults).not.toMatch(/\bafter +/);
  });

  test('commands of the host find dke.toml, run as the user of the service, and tell root so', async () => {
    await type(`cd ~; install -d -o dke -m 700 /var/backups/dke
      install -o dke -m 600 root-passphrase /var/lib/dke/root-passphrase`);
    await type(`cd ~; sudo -u dke dke backup create --out /var/backups/dke/found.dkebackup
      sudo -u dke dke root backup --out /var/lib/dke/found.key --new-passphrase-file /var/lib/dke/root-passphrase`);
    const said = (script: string) => host.type('root', script);
    for (const command of [
      'backup create --out /var/tmp/x',
      'root backup --out /var/tmp/x',
      'server renew-certificate',
    ])
      expect((await said(`dke ${command}`)).complaints).toMatch(
        /data belongs to user \d+: run the command as this user: sudo -u '#\d+' dke/,
      );
    expect(existsSync(join(host.folder, 'var/tmp/x'))).toBe(false);
    await type('systemctl stop dke-server; sudo -u dke dke verify; systemctl start dke-server; dke status');
  });

  test('a file that only root can read is named, with what to do', async () => {
    const { complaints } = await host.type(
      'root',
      'install -m 600 /dev/null ~/secret; sudo -u dke dke backup verify ~/secret --recovery-key ~/secret',
    );
    expect(complaints).toMatch(/EACCES.*this command runs as user \d+/);
    expect(complaints).not.toMatch(/^\s+at /m);
  });

  describe('every command that DKE offers', () => {
    let world: World;
    const done: string[] = [];
    const reasons = new Map<string, string>();
    beforeAll(async () => {
      const options = { versions: ['1.0.0', next] } as const;
      world = openWorld(await installCommands(host, options));
      await furnish(world);
    });

    test.each(catalogue)('%s', async (name, offered) => {
      const { args, fault, why } = await runOffered(world, offered);
      expect(fault, args.join(' ')).toBeUndefined();
      if (why === undefined || typed.has(name)) done.push(name);
      else reasons.set(name, why);
    });

    test('is executed here, or is listed with the reason why not', () => {
      console.info(`${done.length} of ${catalogue.length} offered commands were executed on an installed host; not:`);
      for (const why of new Set(reasons.values()))
        console.info(`  ${[...reasons].flatMap(([name, its]) => (its === why ? [name] : [])).join(', ')}: ${why}`);
      expect(done.length + reasons.size).toBe(catalogue.length);
    });
  });

  test('folders outside its own are written with the drop-in that dke doctor prints', async () => {
    const logs = join('/home', 'dke-logs');
    const places = {
      '/srv/dke snapshots': '[snapshots]\ndirectory = "/srv/dke snapshots"',
      [logs]: `[access_log]\nfile = "${logs}/access.log"`,
      '/opt/dke-audit': '[[audit.sinks]]\nname = "file"\ntype = "file"\npath = "/opt/dke-audit/audit.jsonl"',
    };
    await type(`cp -a /etc/dke/dke.toml ~/dke.toml.before
      printf '%s\\n' '${Object.values(places).join('\n')}' >> /etc/dke/dke.toml`);
    const unit = async () => {
      const { out } = await host.type('root', 'dke doctor --config /etc/dke/dke.toml -o json || true');
      const [{ results = [] } = {}] = JSON.parse(out) as { readonly results: readonly CheckResult[] }[];
      return results.find(({ id }) => id === 'unit');
    };
    const closed = await unit();
    expect(closed?.state).toBe('failed');
    for (const place of Object.keys(places)) expect(closed?.evidence).toContain(place);
    await type(closed?.fix ?? '');
    expect((await unit())?.state).toBe('ok');
    await type(`systemctl restart dke-server; dke status; dke snapshot create; ls '/srv/dke snapshots'/*.dkesnap`);
    const written = () => host.type('root', `test -s /opt/dke-audit/audit.jsonl && test -s ${logs}/access.log`);
    await expect.poll(async () => (await written()).code).toBe(0);
    await type(`cp -a ~/dke.toml.before /etc/dke/dke.toml; rm -r /etc/systemd/system/dke-server.service.d
      systemctl daemon-reload; systemctl restart dke-server; dke status`);
  });

  test('a removal stops the service and leaves its data; a new installation serves it', async () => {
    await type('apt-get remove dke-server');
    expect((await host.type('root', 'systemctl is-active dke-server')).code).not.toBe(0);
    expect(existsSync(join(host.folder, 'var/lib/dke/data/root.key'))).toBe(true);
    await type('apt-get install ./dke-server_1.0.0_amd64.deb; systemctl start dke-server; dke vault list');
    await type('apt-get purge dke-server');
    expect(existsSync(join(host.folder, 'var/lib/dke/data/root.key'))).toBe(true);
  });

  test('RPM: an installation, a first day, an upgrade and a removal', async () => {
    const of = (version: string): readonly string[] =>
      ['server', 'provider'].map((part) => `dke-${part}-${version}-1.x86_64.rpm`);
    const rpms = of('1.0.0').map((name) => join(host.folder, 'root', name));
    cpSync(makeSystemPackage(rpms, join(folder, 'rpm-system')), join(host.folder, 'root/system.rpm'));
    const redHats = makeRedHatAlternatives(folder);
    if (redHats !== undefined) {
      cpSync(redHats, join(host.folder, 'usr/sbin/alternatives'));
      await type('rm /usr/bin/update-alternatives; ln -s alternatives /usr/sbin/update-alternatives');
    }
    await type(`rm -rf /var/lib/dke /etc/dke; hash -r; rpm --install ./system.rpm
      rpm --install ${of('1.0.0').join(' ')}`);
    expect(await type('readlink -f /usr/bin/dke')).toBe('/usr/lib/dke-server/bin/dke\n');
    await type(
      `${places[0]?.[1]}; systemctl enable --now dke-server; dke status; dke doctor --config /etc/dke/dke.toml`,
    );
    await type(`dke vault create kept; rpm --upgrade ${of(next).join(' ')}`);
    const after = await type(
      'dke --version | head -1; readlink -f /usr/bin/dke; systemctl is-active dke-server; dke vault list',
    );
    expect(after).toMatch(/^1\.0\.1\b.*\n\/usr\/lib\/dke-server\/bin\/dke\nactive$/m);
    expect(after).toContain('kept');
    await type('rpm --erase dke-server');
    expect((await host.type('root', 'systemctl is-active dke-server')).code).not.toBe(0);
    expect(existsSync(join(host.folder, 'var/lib/dke/data/root.key'))).toBe(true);
    // The other package's command takes over, with its manual page.
    const other = await type('hash -r; dke --version | head -1; readlink -f /usr/bin/dke /usr/share/man/man1/dke.1.gz');
    expect(other).toMatch(
      /^1\.0\.1\b.*\n\/usr\/lib\/dke-provider\/bin\/dke\n\/usr\/lib\/dke-provider\/share\/dke\.1\.gz\n$/,
    );
    await type('rpm --erase dke-provider; [ ! -L /usr/bin/dke ]; [ ! -L /usr/share/man/man1/dke.1.gz ]');
  });
});
