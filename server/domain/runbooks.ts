// What a person does at the database, step by step, for each operation that moves key material. The
// content is data (content/runbooks): here is its shape, and how it is filled for one application,
// release and kind of database.
//
// The password in the statements is advisory: the provider does not check it. The access_guid in
// pkcs11.toml is the credential.

import { fillCommand } from '../base/command-line.ts';
import { printable } from '../base/printable.ts';

/** The releases that differ in how it is done. */
export const releases = {
  '11g': '11g R2',
  '12c-18c': '12c to 18c',
  '19c': '19c and later',
} as const;
export type Release = keyof typeof releases;
export const releaseNames = Object.keys(releases) as Release[];

export const containers = { 'non-cdb': 'No container database', cdb: 'Container database (CDB)' } as const;
export type Containers = keyof typeof containers;
export const containerNames = Object.keys(containers) as Containers[];

/** Where a step is done. */
export const places = ['host', 'database', 'console', 'target-host', 'target'] as const;
export type Place = (typeof places)[number];

/** The source of a statement about the database, and what is shown of it. */
export const evidence = {
  /** The specification of this service: nothing is shown. */
  specification: undefined,
  /** The behaviour of this service, which its tests prove: no source is shown. */
  service: undefined,
  oracle: "Oracle's reference",
  seen: 'seen in public logs',
  inferred: 'inferred, not confirmed on a real database',
} as const;
export type Evidence = keyof typeof evidence;
export const evidenceNames = Object.keys(evidence) as Evidence[];

/** What fills the places in braces. */
export const runbookValues = {
  application: 'Name of the TDE application',
  applicationId: 'Its id',
  appId: 'Its app_id',
  group: 'Name of its group',
  library: 'Path of the library',
  config: 'Path of pkcs11.toml',
  logs: 'Folder of the logs of the provider',
  owner: 'OS user and group of the database',
  hosts: 'Hosts that have used it',
  masterKey: 'Label of its newest master key',
} as const;
export type RunbookValues = { readonly [name in keyof typeof runbookValues]: string };

/** The end of a statement that applies to every container; it fills the place `{containerAll}`. */
const containerAll: Readonly<Record<Containers, string>> = { cdb: ' CONTAINER = ALL', 'non-cdb': '' };
export const placeNames: readonly string[] = [...Object.keys(runbookValues), 'containerAll'];

export interface RunbookStep {
  /** Stable: completed steps refer to it. */
  readonly id: string;
  readonly title: string;
  readonly place: Place;
  readonly text?: string;
  /** What goes wrong without it. */
  readonly warning?: string;
  readonly sql?: string;
  readonly shell?: string;
  /** A line of a configuration file that the title names. */
  readonly setting?: string;
  /** How the person sees that the step has worked. */
  readonly expect?: string;
  /** The `dke` command that does or shows the same. */
  readonly command?: string;
  /**
   * Only if the step before was answered with this error: the other form of a statement, which some
   * releases require.
   */
  readonly onlyAfter?: string;
}
export interface StepRow extends RunbookStep {
  readonly evidence: Evidence;
  /** Title and section of the public source. */
  readonly source?: string;
  /** Absent: all. */
  readonly releases?: readonly Release[];
  readonly containers?: Containers;
}

export interface RunbookRow {
  readonly title: string;
  readonly summary: string;
  /** The database is not available to its users in the meantime. */
  readonly downtime: boolean;
  readonly releases: readonly Release[];
  /** True: it differs with containers. */
  readonly byContainers: boolean;
  readonly warnings: readonly {
    readonly text: string;
    readonly evidence: Evidence;
    readonly source?: string | undefined;
  }[];
  readonly steps: readonly StepRow[];
}

/** In the order in which they are listed. */
export const runbookNames = [
  'rotate',
  'check',
  'restart-after-rotation',
  'migrate',
  'reverse-migrate',
  'standby',
  'restore',
  'clone-pdb',
  'upgrade-library',
  'destroy',
] as const;
export type RunbookName = (typeof runbookNames)[number];
export type Runbooks = Readonly<Record<RunbookName, RunbookRow>>;

export type RunbookSummary = Pick<RunbookRow, 'title' | 'summary' | 'downtime' | 'releases' | 'byContainers'> & {
  readonly name: RunbookName;
};
export const summarizeRunbook = (runbooks: Runbooks, name: RunbookName): RunbookSummary => {
  const { title, summary, downtime, releases: fitting, byContainers } = runbooks[name];
  return { name, title, summary, downtime, releases: fitting, byContainers };
};

export interface FilledRunbook {
  readonly name: RunbookName;
  readonly title: string;
  readonly summary: string;
  readonly downtime: boolean;
  readonly release: Release;
  /** Null: it does not differ. */
  readonly containers: Containers | null;
  readonly warnings: readonly string[];
  readonly steps: readonly RunbookStep[];
}

/** Places in angle brackets are for the person to fill. */
const fillPlaces = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\{(\w+)\}/g, (place, name: string) => printable(values[name] ?? place));

const withSource = (
  text: string | undefined,
  row: Pick<StepRow, 'evidence' | 'onlyAfter'> & { readonly source?: string | undefined },
) => {
  const grade = evidence[row.evidence];
  const told = [
    ...(row.onlyAfter === undefined ? [] : [`Only if the step before is answered with ${row.onlyAfter}.`]),
    ...(text === undefined ? [] : [text]),
    ...(grade === undefined ? [] : [`(Source: ${grade}${row.source === undefined ? '' : `: ${row.source}`}.)`]),
  ];
  return told.length === 0 ? undefined : told.join(' ');
};

/** Why it cannot be followed there; undefined: it can. */
export const faultOfRunbook = (
  runbooks: Runbooks,
  name: RunbookName,
  release: Release,
  own: Containers,
): string | undefined => {
  const { title, releases: fitting } = runbooks[name];
  if (!fitting.includes(release))
    return `"${title.toLowerCase()}" is not possible with ${releases[release]}: it requires ${releases[fitting[0] ?? '19c']} or higher`;
  if (release === '11g' && own === 'cdb') return '11g R2 has no container databases';
  return undefined;
};

/** The steps for one release, with the application's own values. */
export const fillRunbook = (
  runbooks: Runbooks,
  name: RunbookName,
  release: Release,
  own: Containers,
  values: RunbookValues,
): FilledRunbook => {
  const row = runbooks[name];
  const all = { ...values, containerAll: containerAll[own] };
  const members = ['title', 'text', 'warning', 'sql', 'shell', 'setting', 'expect', 'command', 'onlyAfter'] as const;
  const fillStep = (step: StepRow): RunbookStep => {
    const told = { ...step, text: withSource(step.text, step) };
    const filled = members.flatMap((member) => {
      const value = told[member];
      const fill = member === 'command' || member === 'shell' ? fillCommand : fillPlaces;
      return value === undefined ? [] : [[member, fill(value, all)] as const];
    });
    return { id: step.id, place: step.place, title: step.title, ...Object.fromEntries(filled) };
  };
  return {
    name,
    title: row.title,
    summary: row.summary,
    downtime: row.downtime,
    release,
    containers: row.byContainers ? own : null,
    warnings: row.warnings.map((warning) => withSource(warning.text, warning) ?? ''),
    steps: row.steps
      .filter((step) => step.releases === undefined || step.releases.includes(release))
      .filter((step) => step.containers === undefined || step.containers === own)
      .map(fillStep),
  };
};
