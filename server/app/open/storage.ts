// The data directory and the database of a service: found, checked and opened, in an order that
// writes nothing before what is there was recognised.

import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { readHostFacts } from '../../adapters/host/host-facts.ts';
import type { PostgresOptions } from '../../adapters/store/engine/postgres/postgres-engine.ts';
import { lockDirectory } from '../../adapters/store/engine/sqlite/lock.ts';
import type { StoreError } from '../../adapters/store/engine/store-error.ts';
import { openNodeState } from '../../adapters/store/node-state.ts';
import { begunSetting } from '../../adapters/store/repositories/settings-repository.ts';
import { openPostgresStore, openStore } from '../../adapters/store/store.ts';
import { localDisk } from '../../base/disk-files.ts';
import { replaceFile } from '../../base/durable-files.ts';
import type { Emitter } from '../../base/events.ts';
import { newId } from '../../base/ids.ts';
import type { RowAuthenticator } from '../../base/row-jobs.ts';
import { StartError } from '../../base/start-error.ts';
import type { Clock } from '../../base/time.ts';
import type { Changes } from '../../domain/changes.ts';
import { directoryText } from '../../domain/host.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { Log } from '../../ports/log.ts';
import type { NodeState } from '../../ports/node-state.ts';
import type { Repositories, Store } from '../../ports/store.ts';
import { checkFile } from '../config/check-file.ts';
import type { Config } from '../config/config.ts';
import { settleRestore } from '../host/restore-journal.ts';
import type { Lifecycle } from '../lifecycle.ts';
import { databaseOf } from '../start-errors.ts';
import { readPem } from '../tls/reload-certificates.ts';
import type { Disks } from './disks.ts';
import { lockInstance } from './instance-lock.ts';

/** Makes the data directory, which start-checks.ts has checked. */
const makeDataDirectory = (path: string): void => {
  try {
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new StartError('permission', `${path} cannot be used as data directory (${code})`, { cause: error });
  }
};

/** An empty database of PostgreSQL is not that of a root key which is there. */
export const requireOwnDatabase = (config: Config): void => {
  if (!existsSync(config.root.path)) return;
  throw new StartError('store', `${databaseOf(config)} is empty, but its root key ${config.root.path} is there`, {
    fix: 'name the right database, or put its contents back; to start with an empty database, move the root key away; nothing was changed',
  });
};

/**
 * The node's id: made at the first start, and its own forever, after a power failure, too. A copy
 * of the data directory is another node: without this file.
 */
export const readNodeId = (path: string, make: () => string): string => {
  const known = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(known)) return known;
  const id = make();
  replaceFile(path, `${id}\n`);
  return id;
};

/**
 * What was read last, and read again for the next time: TLS wants it at once, and its disk may
 * hang. A file that cannot be read is as it was.
 */
const lastGood = (first: string, read: () => Promise<string>): (() => string) => {
  let known = first;
  return () => {
    read().then(
      (now) => {
        known = now;
      },
      () => undefined,
    );
    return known;
  };
};

export const readPostgresql = (
  { passwordFile, ca, ...place }: NonNullable<Config['postgresql']>,
  disk: Pick<ForeignDisk, 'read'> = localDisk,
): PostgresOptions => {
  const read = async (path: string): Promise<string> => (await disk.read(path)).toString('utf8');
  if (passwordFile !== undefined) checkFile(passwordFile, 'secret');
  if (ca !== undefined) checkFile(ca, 'public');
  return {
    ...place,
    // Read at every connection, so that it can be changed while the service runs. The protocol's
    // client takes text.
    password: passwordFile === undefined ? undefined : async () => (await read(passwordFile)).trim(),
    ca: ca === undefined ? undefined : lastGood(readPem(ca), () => read(ca)),
  };
};

export const copiedFault = (path: string): StartError =>
  new StartError(
    'store',
    `another server runs as this node: if this data directory is a copy, delete ${path}, and it joins as a node of its own; nothing was changed`,
  );

/** Nodes of one database have locks in it. */
const copiedServiceFault = (dataDirectory: string): StartError =>
  new StartError(
    'store',
    `another server of this host runs with a copy of ${dataDirectory}, or this is the copy: stop one of them; for a clone on purpose, see docs/operations.md ` +
      '(Another host, or a copy); nothing was changed',
  );

/** What tells a data directory from a copy of it. */
const directoryOf = (path: string): string => {
  const { ino, birthtimeMs } = statSync(path);
  return directoryText({ file: `${ino} ${Math.floor(birthtimeMs)}`, host: readHostFacts() });
};

/**
 * Two processes under one id would answer for each other. One that was killed a moment ago is given
 * the time to be gone.
 */
const claimNode = async ({ link }: Store, { id, path, directory }: NodePlace): Promise<void> => {
  const until = performance.now() + 5_000;
  for (;;) {
    const claim = await link?.claim(id, directory);
    if (claim === undefined || claim.state === 'claimed') return;
    if (claim.state === 'copy')
      throw new StartError(
        'store',
        `this data directory, or this host, is not the one that this node ran in last, and that node may still use keys${Number.isFinite(claim.forMs) ? ` for ${Math.ceil(claim.forMs / 1000)} s` : ''}: ` +
          `if this is a copy, delete ${path}, and it joins as a node of its own; if it takes the place of the other one, stop that one ` +
          `${Number.isFinite(claim.forMs) ? 'and start again after this time' : `or run dke node remove, and delete ${path}`}; nothing was changed`,
      );
    if (performance.now() > until) throw copiedFault(path);
    await setTimeout(200);
  }
};

/** Where this node's id is kept. */
export interface NodePlace {
  readonly id: string;
  /** The file with the id. */
  readonly path: string;
  readonly directory: string;
}

export interface Storage {
  readonly store: Store;
  readonly node: NodePlace;
  /** What of this node outlives its process. */
  readonly state: NodeState;
  /** The path of the embedded database, whether it is used or not. */
  readonly databasePath: string;
  /** Nothing is sealed yet: the first start, or the continuation of one that was cut off. */
  readonly isFirstStart: boolean;
  /** Another node has started to use the database, and this one joins for the first time. */
  readonly isNewNode: boolean;
}

export interface StorageOptions {
  readonly config: Config;
  readonly acceptDatabase: boolean;
  readonly ring: KeyRing;
  readonly clock: Clock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  readonly onFatal: (error: StartError) => void;
  readonly events: Emitter<StorageEvents>;
  readonly disks: Pick<Disks, 'files'>;
}

export interface StorageEvents {
  /** A commit has ended that was waited for too long: this is what it has changed. */
  readonly lateCommit: Changes;
}

/** The lock comes first: two services never open one data directory. */
export const openDirectory = ({ dataDirectory }: Config, lifecycle: Lifecycle): void => {
  makeDataDirectory(dataDirectory);
  const lock = lockDirectory(join(dataDirectory, 'lock'));
  lifecycle.opened('the lock of the data directory', () => lock.release());
};

export const openStorage = async (options: StorageOptions): Promise<Storage> => {
  const { config, ring, clock, log, lifecycle, onFatal, events, disks } = options;
  const { dataDirectory, postgresql } = config;
  const databasePath = join(dataDirectory, 'dke.db');
  if (postgresql === undefined) settleRestore(dataDirectory);
  const state = openNodeState(dataDirectory, log, options.acceptDatabase);
  const surroundings = {
    clock,
    authenticateRow: (...of: Parameters<RowAuthenticator>) => ring.authenticateRow(...of),
    onFatal: (error: StoreError) => onFatal(new StartError('store', error.message, { cause: error })),
    onKeks: async (tx: Repositories) => {
      await ring.refresh(tx);
      await ring.retainStored(tx);
    },
    onLate: (changes: Changes) => events.emit('lateCommit', changes),
    // What it could not confirm, this node does not change.
    onChange: () => {
      const refusal = state.refusal();
      if (refusal !== undefined) throw refusal;
    },
  };
  const store =
    postgresql === undefined
      ? await openStore({ path: databasePath, ...surroundings })
      : await openPostgresStore({ postgres: readPostgresql(postgresql, disks.files), ...surroundings });
  if (postgresql === undefined) chmodSync(databasePath, 0o600);
  lifecycle.opened('the database', () => store.close());
  lifecycle.opened('the state of the node', () => state.close());
  const nodePath = join(dataDirectory, 'node');
  const isNewNode = store.link !== undefined && !existsSync(nodePath);
  const node: NodePlace = {
    id: readNodeId(nodePath, () => newId(clock.now())),
    path: nodePath,
    directory: directoryOf(nodePath),
  };
  if (store.link === undefined) {
    const release = await lockInstance(join(dataDirectory, 'instance'), log);
    if (release === undefined) throw copiedServiceFault(dataDirectory);
    lifecycle.opened('the lock of the instance', release);
  }
  await claimNode(store, node);
  for (const standby of (await store.link?.asynchronousStandbys().catch(() => [])) ?? [])
    log.warn(
      'a standby of the database is asynchronous: when it takes over, confirmed changes may be lost (docs/postgresql.md, High availability)',
      { standby },
    );
  // A first start that was cut off has a database in which nothing is sealed yet: it is finished
  // here.
  const isFirstStart = (await store.read.keks.list()).length === 0;
  // What follows may take long: a person is asked for a passphrase, perhaps. Other nodes wait for a
  // first start only.
  if (!isFirstStart) await store.started();
  // A first start that was cut off has started to use the database; any other empty one is not that
  // of the root key.
  const isInUse = (await store.read.settings.get(begunSetting)) !== undefined;
  if (isFirstStart && !isInUse && postgresql !== undefined) requireOwnDatabase(config);
  if (isFirstStart) await store.write((tx) => tx.settings.set(begunSetting, 'yes'));
  return { store, node, state, databasePath, isFirstStart, isNewNode: isNewNode && !isFirstStart };
};
