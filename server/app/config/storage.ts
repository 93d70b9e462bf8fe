// Tables of dke.toml about what the service keeps: the database, the root key, erasure and
// snapshots.

import { resolve } from 'node:path';
import { Cron } from 'croner';
import { z } from 'zod';
import { parseVerifierKey } from '../../base/checkpoint.ts';
import { filePath, filePathOr, namedList, port, readTable, seconds, shortName } from './fields.ts';

const rootProvider = z.discriminatedUnion('type', [
  z.strictObject({ name: shortName, type: z.literal('file'), path: filePath }),
  // Without credential, file and descriptor, a person is asked.
  z
    .strictObject({
      name: shortName,
      type: z.literal('passphrase'),
      credential: z
        .string()
        .regex(/^[A-Za-z0-9._-]{1,100}$/)
        .optional(),
      file: filePath.optional(),
      descriptor: z.int().min(3).max(1000).optional(),
    })
    .refine(
      ({ credential, file, descriptor }) =>
        [credential, file, descriptor].filter((each) => each !== undefined).length <= 1,
      'one of credential, file and descriptor',
    ),
  z.strictObject({
    name: shortName,
    type: z.literal('pkcs11'),
    // The loader searches for a library name without a folder.
    module: filePathOr((text) => !text.includes('/')),
    token: z.string().min(1).max(32),
    key: z.string().min(1).max(100),
    pin_file: filePath,
    timeout_seconds: seconds(600).default(20),
  }),
]);

/** Five fields, in UTC: snapshots are not made every second. */
const isCron = (text: string): boolean => {
  try {
    return text.trim().split(/\s+/).length === 5 && new Cron(text, { paused: true }).nextRun() !== null;
  } catch {
    return false;
  }
};

export const storageTables = {
  data: z.strictObject({ directory: filePath.prefault('dke-data') }).prefault({}),
  store: z
    .strictObject({
      type: z.enum(['sqlite', 'postgresql']).default('sqlite'),
      host: z.string().min(1).max(253).optional(),
      port: port.default(5432),
      user: z.string().min(1).max(63).default('dke'),
      database: z.string().min(1).max(63).default('dke'),
      password_file: filePath.optional(),
      ca: filePath.optional(),
      readers: z.int().min(1).max(100).default(8),
      /** How long this node uses keys without hearing of changes; 0: without limit. */
      contact_seconds: z.int().min(0).max(86_400).default(300),
      /** How far a copy of the database that the database does not know may lag behind it. */
      replica_lag_seconds: z.int().min(0).max(604_800).default(60),
    })
    .refine(({ type, host }) => type === 'sqlite' || host !== undefined, 'postgresql needs its host')
    .prefault({}),
  /** Without providers, the file at `path` contains the root key itself. */
  root: z.strictObject({ path: filePath.optional(), providers: namedList(rootProvider, 8).default([]) }).prefault({}),
  erasure: z
    .strictObject({
      gather_ms: z.int().min(0).max(3_600_000).default(1000),
      missing_snapshots: z.enum(['wait', 'name']).default('wait'),
    })
    .prefault({}),
  snapshots: z
    .strictObject({
      directory: filePath.optional(),
      schedule: z
        .string()
        .min(1)
        .max(200)
        .refine(isCron, 'is not a cron expression: use five fields, for example 0 3 * * *')
        .optional(),
      keep_count: z.int().min(1).max(10_000).optional(),
      keep_days: z.int().min(1).max(36_500).optional(),
      undelete_days: z.int().min(0).max(3650).default(30),
      /** Verifier keys of other services whose snapshots may be imported. */
      trusted_signers: z
        .array(
          z
            .string()
            .max(500)
            .refine(
              (text) => parseVerifierKey(text) !== null,
              'is not a verifier key: use the verifierKey that dke audit log shows on the service that created the snapshots',
            ),
        )
        .max(100)
        .default([]),
      /** Whether a restore that creates or reactivates credentials waits for a second person. */
      restore_second_person: z.boolean().default(true),
      /** Whether an export, and a new recovery key, wait for a second person where there is one. */
      export_second_person: z.boolean().default(true),
    })
    .prefault({}),
};

type Given = { readonly [Name in keyof typeof storageTables]: z.infer<(typeof storageTables)[Name]> };

const readPostgresql = (store: Given['store'], folder: string) => {
  const { type, host, contactSeconds, replicaLagSeconds, ...rest } = readTable(store, folder);
  if (type === 'sqlite' || host === undefined) return undefined;
  return { ...rest, host, contactMs: contactSeconds * 1000, replicaLagMs: replicaLagSeconds * 1000 };
};

export const readStorage = (given: Given, folder: string) => {
  const dataDirectory = readTable(given.data, folder).directory;
  const root = readTable(given.root, folder);
  const snapshots = readTable(given.snapshots, folder);
  return {
    dataDirectory,
    /** Undefined: the embedded database in the data directory. */
    postgresql: readPostgresql(given.store, folder),
    root: { ...root, path: root.path ?? resolve(dataDirectory, 'root.key') },
    erasure: readTable(given.erasure, folder),
    snapshots: {
      ...snapshots,
      directory: snapshots.directory ?? resolve(dataDirectory, 'snapshots'),
      schedule: snapshots.schedule ?? null,
      keepCount: snapshots.keepCount ?? null,
      keepDays: snapshots.keepDays ?? null,
    },
  };
};
