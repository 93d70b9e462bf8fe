// The database hosts that a configuration bundle is made for: operating system, database and
// processor architecture. Only tables.

/** How each system names and installs packages. */
export const systems = {
  debian: { label: 'Debian', kind: 'deb' },
  ubuntu: { label: 'Ubuntu', kind: 'deb' },
  rhel: { label: 'RHEL, Rocky Linux, AlmaLinux', kind: 'rpm' },
  'oracle-linux': { label: 'Oracle Linux', kind: 'rpm' },
  sles: { label: 'SUSE Linux Enterprise', kind: 'rpm' },
} as const;
export type System = keyof typeof systems;
export const systemNames = Object.keys(systems) as System[];

/**
 * `owner`: the OS user and group that the database runs as; null: it differs, so the administrator
 * names it.
 */
export const databases = {
  oracle: {
    label: 'Oracle Database',
    owner: 'oracle:oinstall',
    packages: ['dke-provider'],
    guide: 'docs/databases/oracle.md',
  },
  mariadb: {
    label: 'MariaDB',
    owner: 'mysql:mysql',
    packages: ['dke-provider', 'dke-mariadb'],
    guide: 'docs/databases/mariadb.md',
  },
  postgresql: {
    label: 'PostgreSQL',
    owner: 'postgres:postgres',
    packages: ['dke-provider'],
    guide: 'docs/databases/postgresql.md',
  },
  java: {
    label: 'Java (Derby, HSQLDB, JCE)',
    owner: null,
    packages: ['dke-provider'],
    guide: 'docs/databases/derby.md',
  },
  other: { label: 'Another PKCS#11 program', owner: null, packages: ['dke-provider'], guide: 'docs/pkcs11.md' },
} as const;
export type Database = keyof typeof databases;
export const databaseNames = Object.keys(databases) as Database[];

/** Architectures, and what each is called in the file names of a deb and of an rpm package. */
export const architectures = {
  x86_64: { deb: 'amd64', rpm: 'x86_64' },
  aarch64: { deb: 'arm64', rpm: 'aarch64' },
} as const;
export type Architecture = keyof typeof architectures;
export const architectureNames = Object.keys(architectures) as Architecture[];

export interface Target {
  readonly system: System;
  readonly database: Database;
  readonly architecture: Architecture;
}

/** A package as its file name describes it. */
export interface PackageName {
  readonly package: string;
  readonly version: string;
  readonly kind: 'deb' | 'rpm';
  readonly architecture: Architecture;
}

const patterns = {
  deb: /^(?<name>dke-[a-z]+)_(?<version>[0-9][A-Za-z0-9.+~-]*)_(?<machine>amd64|arm64)\.deb$/,
  rpm: /^(?<name>dke-[a-z]+)-(?<version>[0-9][A-Za-z0-9.+~]*)-[0-9]+\.(?<machine>x86_64|aarch64)\.rpm$/,
} as const;

/** Null: the file is not one of the service's packages. */
export const readPackageName = (file: string): PackageName | null => {
  for (const kind of ['deb', 'rpm'] as const) {
    const found = patterns[kind].exec(file)?.groups;
    const architecture = architectureNames.find((name) => architectures[name][kind] === found?.machine);
    if (found !== undefined && architecture !== undefined)
      return { package: found.name ?? '', version: found.version ?? '', kind, architecture };
  }
  return null;
};

/** Compares versions number by number, as far as both have numbers. */
const compareVersions = (a: string, b: string): number => {
  const [left, right] = [a, b].map((text) => text.split(/[^0-9]+/).map(Number));
  for (let at = 0; at < Math.max(left?.length ?? 0, right?.length ?? 0); at++) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
};

/**
 * The newest of the available packages that a target needs, and the names of those that are
 * missing.
 */
export const packagesFor = <P extends PackageName>(
  { system, database, architecture }: Target,
  available: readonly P[],
): { readonly found: readonly P[]; readonly missing: readonly string[] } => {
  const { kind } = systems[system];
  const best = databases[database].packages.map((wanted) => ({
    wanted,
    found: available
      .filter((each) => each.package === wanted && each.kind === kind && each.architecture === architecture)
      .sort((a, b) => compareVersions(b.version, a.version))[0],
  }));
  return {
    found: best.flatMap(({ found }) => (found === undefined ? [] : [found])),
    missing: best.flatMap(({ wanted, found }) => (found === undefined ? [wanted] : [])),
  };
};
