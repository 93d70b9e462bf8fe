// Where a key can be, and how each copy ends: the one declaration. What waits for copies
// (`unrecoverableAt`), what names them (the audit log, the API, the console, the command) and the
// table in docs/snapshots.md follow from it.

import { toRfc3339 } from '../base/time.ts';
import type { Integrity } from './vault.ts';

interface Place {
  /** For the page. */
  readonly what: string;
  readonly end: string;
  /**
   * 'run': the erasure run reaches it. 'waits': a destroyed key is not unrecoverable before.
   * 'named': in its audit record.
   */
  readonly by: 'run' | 'waits' | 'named';
}
/** Every place that can hold a key, or the key that opens one. */
export const copyPlaces = {
  database: {
    what: 'The database with its old pages and logs, and its standbys',
    end: 'The erasure run seals everything else again, and the old root key is overwritten',
    by: 'run',
  },
  'root-key': {
    what: 'The root key file of each node, and what a change of providers has left beside it',
    end: 'The erasure run overwrites the old root key in place',
    by: 'run',
  },
  snapshot: {
    what: 'Snapshots in the folder, deleted ones too',
    end: 'The erasure run overwrites the key in each file. For a missing file, `missing_snapshots` decides',
    by: 'run',
  },
  'other-tenant': {
    what: 'Copies of the key in other tenants',
    end: 'Destroy the copy there',
    by: 'waits',
  },
  'exported-snapshot': {
    what: 'Exported snapshots',
    end: 'Destroy the file, then run `dke copy confirm-destroyed`',
    by: 'waits',
  },
  'service-backup': {
    what: 'Backups of the service (`dke backup create`), while there is a backup of the root key of their time',
    end: 'Destroy the file or those backups of the root key, then run `dke copy confirm-destroyed`',
    by: 'waits',
  },
  'root-backup': {
    what: 'Backups of the root key (`dke root backup`). They also open copies of the database that DKE does not know',
    end: 'Destroy the file, then run `dke copy confirm-destroyed`. Records of destroyed keys have their number',
    by: 'named',
  },
} as const satisfies { readonly [place: string]: Place };
export type CopyPlace = keyof typeof copyPlaces;

/** What `unrecoverableAt` says, in the words of every text about it. */
export const unrecoverableMeans =
  'From this time on, the service knows no copy that opens the key: not in the database, its old pages and logs, its snapshots and ' +
  'their exports, its backups, or another tenant.';

export const outsideKinds = ['exported-snapshot', 'service-backup', 'root-backup'] as const;
export type OutsideKind = (typeof outsideKinds)[number];

/** A file that left the service, with keys or with what opens them. */
export interface OutsideCopy {
  readonly id: string;
  readonly kind: OutsideKind;
  /** Null: of the whole service. */
  readonly tenantId: string | null;
  /** The id of the exported snapshot; null: the file is a backup. */
  readonly snapshotId: string | null;
  /** When the file was made, and by whom; on a host: its operator. */
  readonly at: number;
  readonly actorId: string;
  readonly actorName: string;
  /**
   * The time of the state in it: not before, not after. An imported snapshot has the time of
   * another clock.
   */
  readonly stateFrom: number;
  readonly stateUntil: number;
  /** Records of the audit log in that state; null: not known, or of another log. */
  readonly stateSize: number | null;
  /**
   * Keys that were destroyed before this time, and at this size of the audit log, had been taken
   * out of it before it left.
   */
  readonly erasedUntil: number | null;
  readonly erasedSize: number | null;
  /** Root keys that are in it, or that open it; null: not known. */
  readonly oldestRootEpoch: number | null;
  readonly rootEpoch: number | null;
  /** An operator has confirmed it. */
  readonly destroyedAt: number | null;
  readonly integrity: Integrity;
}

/** An outside copy without what only some kinds have. */
export const newOutsideCopy = (
  copy: Pick<OutsideCopy, 'id' | 'kind' | 'at' | 'stateFrom' | 'stateUntil'> & Partial<OutsideCopy>,
): OutsideCopy => ({
  tenantId: null,
  snapshotId: null,
  actorId: 'host',
  actorName: 'host',
  stateSize: null,
  erasedUntil: null,
  erasedSize: null,
  oldestRootEpoch: null,
  rootEpoch: null,
  destroyedAt: null,
  integrity: 'ok',
  ...copy,
});

/**
 * Whether a backup of the root key opens a backup of the service. What is not known, or was changed
 * from outside, counts as fitting.
 */
export const opens = (root: OutsideCopy, backup: OutsideCopy): boolean =>
  root.integrity !== 'ok' ||
  root.rootEpoch === null ||
  backup.rootEpoch === null ||
  ((root.oldestRootEpoch ?? 0) <= backup.rootEpoch && root.rootEpoch >= (backup.oldestRootEpoch ?? 0));

/** A copy of a key, as people are told of it. */
export interface KeyCopy {
  readonly place: CopyPlace;
  /** The id of the key in the other tenant, of the outside copy, or of the snapshot. */
  readonly id: string;
  readonly tenantId: string | null;
  readonly tenantName: string | null;
  readonly applicationId: string | null;
  readonly at: number;
  /** `unrecoverableAt` stays empty while it is there. */
  readonly waits: boolean;
  /** What it is, and what ends it. */
  readonly text: string;
}

export interface KeyCopies {
  /** How many are waited for. */
  readonly count: number;
  /** Copies that the actor may see, the newest first, at most 100. */
  readonly items: readonly KeyCopy[];
}

type Described = Pick<KeyCopy, 'place' | 'id' | 'at' | 'tenantName' | 'applicationId'> & { readonly by?: string };
export const describeCopy = ({ place, id, at, tenantName, applicationId, by }: Described): string => {
  const time = toRfc3339(at);
  if (place === 'other-tenant')
    return `the key ${id} of the tenant ${tenantName}: usable until ${applicationId === null ? 'that tenant is purged' : 'it is destroyed there'}`;
  if (place === 'exported-snapshot')
    return `the snapshot that ${by ?? 'a person'} exported at ${time}: opens with a recovery key until the file is destroyed`;
  if (place === 'service-backup')
    return `the backup of the service of ${time}: opens with a recovery key and a backup of the root key of that time until one of them is destroyed`;
  if (place === 'root-backup')
    return `the backup of the root key of ${time}: opens backups of the service and copies of the database of that time until it is destroyed`;
  return `the snapshot of ${time}, whose file is missing: opens with a recovery key until the key is erased from it`;
};
