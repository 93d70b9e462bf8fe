// What is in each package: dke-server (the service, its pages, the whole `dke` command),
// dke-provider (the PKCS#11 library, its agent, the `dke` command with what `dke provider install`
// installs) and dke-mariadb (MariaDB's plugin); and in the container image of the service,
// dke-image. All but the plugin include Node and the packages that their programs import, and
// nothing that only a build needs.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { agentService, agentServiceUnit, agentSocket, agentSocketUnit } from '../install/units.ts';

/** Packages of Debian and of RPM, and container images. */
export const kinds = ['deb', 'rpm', 'oci'] as const;
export type Kind = (typeof kinds)[number];
type ByKind = Partial<Readonly<Record<Kind, string>>>;

interface BuiltFile {
  /** Below build/. */
  readonly from: string;
  /** In the system, by kind of package. */
  readonly to: ByKind;
  /** Links to it, by kind. */
  readonly links?: ByKind;
  /** Debian's package without which the build leaves the file out. */
  readonly madeWith: string;
  readonly strip: boolean;
}

export interface PackageSpec {
  readonly name: string;
  readonly kinds: readonly Kind[];
  readonly summary: string;
  /** Paragraphs, without the leading blank of control files. */
  readonly description: readonly string[];
  /** In addition to what its programs are linked with. */
  readonly depends: Partial<Readonly<Record<Kind, readonly string[]>>>;
  /** Folder with postinst, prerm and postrm. */
  readonly scripts?: string;
  /** Node, the addon and the compiled program, with these folders of dist. */
  readonly program?: { readonly folders: readonly string[]; readonly pages: boolean; readonly library: boolean };
  readonly built: readonly BuiltFile[];
  /** Files with their text, by absolute path in the system. */
  readonly texts: (read: (path: string) => string) => Readonly<Record<string, string>>;
  /** Empty folders of the system. */
  readonly directories: readonly string[];
  readonly configurationFiles: readonly string[];
  /** SPDX expression of what is ours. */
  readonly licence: string;
}

/** Pages that lead to each other, below docs. */
const documentation =
  (name: string, ...pages: readonly string[]) =>
  (read: (path: string) => string): Record<string, string> =>
    Object.fromEntries(pages.map((page) => [`/usr/share/doc/${name}/${page}`, read(join('docs', page))]));
/** Every page: messages, alerts and pages name others. */
const pages = ['', 'databases', 'monitoring'].flatMap((folder) =>
  readdirSync(join(import.meta.dirname, '../../docs', folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.yaml'))
    .map(({ name }) => join(folder, name))
    .toSorted(),
);

/** Certificates of well-known authorities, and system users. */
const system = {
  deb: ['systemd | systemd-standalone-sysusers', 'ca-certificates'],
  rpm: ['systemd', 'ca-certificates'],
};

const serviceSummary = 'external key management service: console, XKS proxy, database keys';
const service = {
  folders: ['web', 'server/adapters/runbooks/runbooks', 'server/contract/api'],
  pages: true,
  library: false,
};
/** Folders of the links to completion and the manual page, which postinst makes. */
const shellFolders = [
  '/usr/share/man/man1',
  '/usr/share/bash-completion/completions',
  '/usr/share/zsh/vendor-completions',
  '/usr/share/zsh/site-functions',
  '/usr/share/fish/vendor_completions.d',
];

export const packages: readonly PackageSpec[] = [
  {
    name: 'dke-server',
    kinds: ['deb', 'rpm'],
    summary: serviceSummary,
    description: [
      'One service for the keys of databases that encrypt (over a PKCS#11 library on their hosts) and of cloud key services (an external key store proxy, signed with SigV4). It brings a console, an API, an audit log and the dke command.',
    ],
    depends: system,
    scripts: 'server/packaging',
    program: service,
    built: [],
    texts: (read) => ({
      '/etc/dke/dke.toml': read('server/packaging/dke.toml'),
      '/usr/lib/systemd/system/dke-server.service': read('server/packaging/dke-server.service'),
      ...Object.fromEntries(
        ['dke-backup.service', 'dke-backup.timer'].map((unit) => [
          `/usr/lib/systemd/system/${unit}`,
          read(`server/packaging/${unit}`),
        ]),
      ),
      '/usr/lib/sysusers.d/dke-server.conf': read('server/packaging/dke-server.sysusers'),
      ...documentation('dke-server', ...pages)(read),
    }),
    directories: ['/etc/dke', ...shellFolders],
    configurationFiles: ['/etc/dke/dke.toml'],
    licence: 'Apache-2.0',
  },
  {
    name: 'dke-provider',
    kinds: ['deb', 'rpm'],
    summary: 'PKCS#11 library of the DKE key service, for database hosts',
    description: [
      'A database loads libdke_pkcs11.so and keeps its master key in a DKE service. The library speaks to an agent on the same host, which it starts itself or finds behind a socket of systemd.',
      'dke provider install copies both to where a database looks for them, as its OS user, and checks, upgrades and removes them.',
    ],
    depends: system,
    scripts: 'provider/packaging',
    program: { folders: ['server/adapters/runbooks/runbooks'], pages: false, library: true },
    built: [
      {
        from: 'provider/java/dke-jce.jar',
        to: { deb: '/usr/share/java/dke-jce.jar', rpm: '/usr/share/java/dke-jce.jar' },
        madeWith: 'openjdk-17-jdk-headless',
        strip: false,
      },
    ],
    texts: (read) => ({
      [`/usr/lib/systemd/system/${agentSocketUnit}`]: agentSocket(),
      [`/usr/lib/systemd/system/${agentServiceUnit}`]: agentService({
        program: '/usr/lib/dke-provider/1.0/dke-agent',
        user: 'dke-agent',
        group: 'dke-agent',
        readsForOthers: true,
        logDirectory: '/var/log/dke-agent',
      }),
      '/usr/lib/sysusers.d/dke-provider.conf': read('provider/packaging/dke-provider.sysusers'),
      ...documentation('dke-provider', ...pages)(read),
    }),
    directories: ['/etc/dke', ...shellFolders],
    configurationFiles: [],
    licence: 'Apache-2.0',
  },
  {
    name: 'dke-mariadb',
    kinds: ['deb', 'rpm'],
    summary: "MariaDB's encryption keys in the DKE key service",
    description: [
      'The plugin dke_key_management, which wraps the data keys of a MariaDB server under a master key in a DKE service. It loads the library of dke-provider.',
    ],
    depends: { deb: ['dke-provider'], rpm: ['dke-provider'] },
    built: [
      {
        from: 'provider/mariadb/dke_key_management.so',
        // Debian's place; that of MariaDB's own RPM packages, with a link where those of RHEL look.
        to: {
          deb: '/usr/lib/mysql/plugin/dke_key_management.so',
          rpm: '/usr/lib64/mysql/plugin/dke_key_management.so',
        },
        links: { rpm: '/usr/lib64/mariadb/plugin/dke_key_management.so' },
        madeWith: 'libmariadbd-dev',
        strip: true,
      },
    ],
    texts: documentation('dke-mariadb', 'databases/mariadb.md'),
    directories: [],
    configurationFiles: [],
    licence: 'Apache-2.0 OR GPL-2.0-or-later',
  },
  {
    name: 'dke-image',
    kinds: ['oci'],
    summary: serviceSummary,
    description: [],
    depends: {},
    program: service,
    built: [],
    texts: (read) => ({
      '/etc/dke/dke.toml': read('server/packaging/image.toml'),
      ...documentation('dke-image', 'containers.md', 'command.md', 'dke.toml')(read),
    }),
    directories: [],
    configurationFiles: [],
    licence: 'Apache-2.0',
  },
];
