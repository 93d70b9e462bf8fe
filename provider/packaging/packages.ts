// What is in each Debian package: dke-server (the service, its pages, the whole `dke` command) and dke-provider (the PKCS#11
// library, its agent, the `dke` command with what `dke provider install` lays down). Each brings its Node and the packages that
// its program imports, and nothing that only a build needs.
import { join } from 'node:path';
import { agentService, agentServiceUnit, agentSocket, agentSocketUnit } from '../install/units.ts';

export interface PackageSpec {
  readonly name: string;
  readonly summary: string;
  /** Paragraphs, without the leading blank of control files. */
  readonly description: readonly string[];
  /** Beside what its programs are linked with. */
  readonly depends: readonly string[];
  /** Holds postinst, prerm and postrm. */
  readonly scripts: string;
  /** Folders of dist that are taken whole: [from, below dist]. */
  readonly folders: readonly string[];
  /** The library, dke-agent and dke-probe go along. */
  readonly library: boolean;
  /** Files with their text, by absolute path in the system. */
  readonly texts: (root: string, read: (path: string) => string) => Readonly<Record<string, string>>;
  readonly configurationFiles: readonly string[];
}

const documentation =
  (name: string, ...pages: readonly string[]) =>
  (read: (path: string) => string): Record<string, string> =>
    Object.fromEntries(
      pages.map((page) => [`/usr/share/doc/${name}/${page.split('/').at(-1)}`, read(join('docs', page))]),
    );

export const packages: readonly PackageSpec[] = [
  {
    name: 'dke-server',
    summary: 'external key management service: console, XKS proxy, database keys',
    description: [
      'One service for the keys of databases that encrypt (over a PKCS#11 library on their hosts) and of cloud key services (an external key store proxy, signed with SigV4). It brings a console, an API, an audit log and the dke command.',
    ],
    depends: ['systemd | systemd-standalone-sysusers', 'ca-certificates'],
    scripts: 'server/packaging',
    folders: ['web', 'server/content/runbooks', 'server/content/api'],
    library: false,
    texts: (_, read) => ({
      '/etc/dke/dke.toml': read('server/packaging/dke.toml'),
      '/usr/lib/systemd/system/dke-server.service': read('server/packaging/dke-server.service'),
      '/usr/lib/sysusers.d/dke-server.conf': read('server/packaging/dke-server.sysusers'),
      ...documentation('dke-server', 'install.md', 'command.md', 'dke.toml')(read),
    }),
    configurationFiles: ['/etc/dke/dke.toml'],
  },
  {
    name: 'dke-provider',
    summary: 'PKCS#11 library of the DKE key service, for database hosts',
    description: [
      'A database loads libdke_pkcs11.so and keeps its master key in a DKE service. The library speaks to an agent on the same host, which it starts itself or finds behind a socket of systemd.',
      'dke provider install lays both where a database looks for them, as its OS user, and checks, upgrades and takes back.',
    ],
    depends: ['systemd | systemd-standalone-sysusers', 'ca-certificates'],
    scripts: 'provider/packaging',
    folders: ['server/content/runbooks'],
    library: true,
    texts: (_, read) => ({
      [`/usr/lib/systemd/system/${agentSocketUnit}`]: agentSocket(),
      [`/usr/lib/systemd/system/${agentServiceUnit}`]: agentService({
        program: '/usr/lib/dke-provider/1.0/dke-agent',
        user: 'dke-agent',
        group: 'dke-agent',
        readsForOthers: true,
        logDirectory: '/var/log/dke-agent',
      }),
      '/usr/lib/sysusers.d/dke-provider.conf': read('provider/packaging/dke-provider.sysusers'),
      ...documentation('dke-provider', 'install.md', 'command.md', 'pkcs11.md', 'return-codes.md')(read),
    }),
    configurationFiles: [],
  },
];
