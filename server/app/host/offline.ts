// The data of a service that is stopped, opened for the command's work on its host: the same lock,
// store, root and keys as the service opens, and nothing next to them. Adapters meet here as they
// do in app/service.ts.

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Core, CoreError } from '../../../addon/core.ts';
import { createKeyRing } from '../../adapters/crypto/key-ring.ts';
import { openCore } from '../../adapters/crypto/open-core.ts';
import { inspectPackageDirectory } from '../../adapters/packages/package-folder.ts';
import { backUpRoot, restoreRoot } from '../../adapters/roots/backup.ts';
import { anchorBeside } from '../../adapters/roots/durable-files.ts';
import { openFileRoot } from '../../adapters/roots/file-root.ts';
import { openWrappedFile, type RootOptions } from '../../adapters/roots/open-root.ts';
import { type AskPassphrase, createWays, type DeclaredWay, WayClosed } from '../../adapters/roots/unlock-ways.ts';
import {
  changePath,
  changeWays,
  clearDrafts,
  createWrapped,
  dropChange,
  formatOf,
  type NewWay,
  type OpenWrapped,
  readWrapped,
  releaseWrapped,
  requestChange,
} from '../../adapters/roots/wrapped-file.ts';
import { wrappedRoot } from '../../adapters/roots/wrapped-root.ts';
import { type DirectoryLock, lockDirectory } from '../../adapters/store/engine/sqlite/lock.ts';
import { countTables } from '../../adapters/store/engine/sqlite/table-counts.ts';
import { StoreError } from '../../adapters/store/engine/store-error.ts';
import { inspectDatabase } from '../../adapters/store/migrations/inspect-database.ts';
import { forgetPosition, recordRootRestored } from '../../adapters/store/node-state.ts';
import { type CopyReport, copyWhole, openPostgresStore, openStore } from '../../adapters/store/store.ts';
import { command } from '../../base/command-line.ts';
import { putInPlace } from '../../base/durable-files.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import type { RowAuthenticator } from '../../base/row-jobs.ts';
import { StartError } from '../../base/start-error.ts';
import { systemClock, toRfc3339 } from '../../base/time.ts';
import { type Actor, acrossTenants } from '../../domain/actor.ts';
import { rotationSetting } from '../../domain/changes.ts';
import { createToken } from '../../operations/access/manage-tokens.ts';
import { adoptDecisions } from '../../operations/audit/compare-log.ts';
import { type VerificationReport, verifyStore } from '../../operations/service/verify-store.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { RootBackup, RootProvider } from '../../ports/root-provider.ts';
import type { Store } from '../../ports/store.ts';
import type { Config } from '../config/config.ts';
import { readPostgresql } from '../open/storage.ts';
import { toStartError } from '../start-errors.ts';

export { countTables, inspectDatabase, inspectPackageDirectory };

interface Offline {
  readonly core: Core;
  readonly store: Store;
  readonly ring: KeyRing;
  readonly root: RootProvider;
  close(): Promise<void>;
}

interface Opened extends Offline {
  /** Undefined: the file holds the root key itself. */
  readonly wrapped: OpenWrapped | undefined;
}

/** `unchanged`: for reading only. Throws StartError: as a service that does not start. */
export const openOffline = async (config: Config, ask: AskPassphrase, unchanged?: true): Promise<Opened> => {
  const undo: (() => void | Promise<void>)[] = [];
  try {
    const databasePath = join(config.dataDirectory, 'dke.db');
    if (config.postgresql === undefined && !existsSync(databasePath))
      throw new StartError('store', `there is no database ${databasePath}: name the service's dke.toml with --config`);
    const lock: DirectoryLock = lockDirectory(join(config.dataDirectory, 'lock'));
    undo.push(() => lock.release());
    const { lockedBytes, allowUnlocked } = config.memory;
    const { raw } = openCore({
      allowUnlocked,
      ...(lockedBytes === undefined ? {} : { arenaBytes: lockedBytes }),
    });
    const ring = createKeyRing(raw);
    undo.push(() => ring.close());
    const surroundings = {
      clock: systemClock,
      authenticateRow: (...of: Parameters<RowAuthenticator>) => ring.authenticateRow(...of),
      onFatal: () => undefined,
      unchanged,
    };
    const store =
      config.postgresql === undefined
        ? await openStore({ path: databasePath, ...surroundings })
        : await openPostgresStore({ postgres: readPostgresql(config.postgresql), ...surroundings });
    undo.push(() => store.close());
    const { path, providers } = config.root;
    if (!existsSync(path)) throw new StartError('root-key', `the root key file ${path} is missing: put it back`);
    if (unchanged !== true) clearDrafts(raw, path);
    let wrapped: OpenWrapped | undefined;
    if (formatOf(path) !== 1) {
      const opened = await openWrappedFile({
        core: raw,
        root: { path, providers },
        ask,
        readDescriptor: (descriptor) => readFileSync(descriptor),
      });
      if (!('head' in opened)) {
        const why = opened.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
        throw new StartError(
          'root-key',
          `the root key ${path} could not be opened: ${why || 'no provider is declared'}`,
        );
      }
      wrapped = opened;
    }
    const root = wrapped === undefined ? openFileRoot(raw, path, false) : wrappedRoot(raw, wrapped);
    undo.push(() => root.release());
    await ring.unlock(store, root);
    if (unchanged !== true) await adoptDecisions({ store, root });
    const close = async (): Promise<void> => {
      for (const step of undo.reverse()) await step();
    };
    return { core: raw, store, ring, root, wrapped, close };
  } catch (error) {
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined);
    throw error instanceof WayClosed
      ? new StartError('root-key', error.message, { cause: error })
      : toStartError(error, config);
  }
};

/**
 * Checks everything that is stored, and changes nothing of it. Throws StartError when it cannot be
 * opened at all.
 */
export const verifyOffline = async (config: Config, ask: AskPassphrase): Promise<VerificationReport> => {
  const opened = await openOffline(config, ask, true);
  try {
    return await verifyStore(opened);
  } finally {
    await opened.close();
  }
};

export const filesOf = (path: string): readonly string[] => ['', '-wal', '-shm'].map((end) => `${path}${end}`);

/**
 * Undefined: the embedded database of this data directory, under a name that no service opens until
 * it is whole.
 */
const openTarget = async (
  target: Config,
  draft: string,
  ring: KeyRing,
): Promise<{ readonly store: Store; finish(): Promise<void>; abandon(): Promise<void> }> => {
  const surroundings = {
    clock: systemClock,
    authenticateRow: (...of: Parameters<RowAuthenticator>) => ring.authenticateRow(...of),
    onFatal: () => undefined,
  };
  if (target.postgresql !== undefined) {
    const store = await openPostgresStore({ postgres: readPostgresql(target.postgresql), ...surroundings });
    return { store, finish: () => store.close(), abandon: () => store.close() };
  }
  // Removes what an earlier copy has left that was cut off.
  for (const file of filesOf(draft)) rmSync(file, { force: true });
  const store = await openStore({ path: draft, ...surroundings });
  return {
    store,
    finish: async () => {
      await store.checkpoint();
      await store.close();
      putInPlace(draft, join(target.dataDirectory, 'dke.db'));
    },
    abandon: async () => {
      await store.close();
      for (const file of filesOf(draft)) rmSync(file, { force: true });
    },
  };
};

export interface MigrationReport extends CopyReport {
  /** Findings about the copied data. The check of the original had exactly the same. */
  readonly findings: readonly string[];
}

/**
 * Copies what is stored to the store that another configuration names, for the same data directory.
 * The source stays as it is; the target is empty before, and afterwards unless all of it is there.
 * Throws StartError.
 */
export const migrateStore = async (config: Config, target: Config, ask: AskPassphrase): Promise<MigrationReport> => {
  if (config.dataDirectory !== target.dataDirectory || config.root.path !== target.root.path)
    throw new StartError(
      'config',
      'the two configurations differ in more than [store]: the root key stays where it is',
    );
  if ((config.postgresql === undefined) === (target.postgresql === undefined))
    throw new StartError('config', 'both configurations name a store of the same kind: use its own tools for a copy');
  const path = join(target.dataDirectory, 'dke.db');
  if (target.postgresql === undefined && existsSync(path))
    throw new StartError('store', `${path} already exists: move it away; nothing was changed`);
  const opened = await openOffline(config, ask);
  try {
    const { store, ring, root, core } = opened;
    if (root.previous !== undefined)
      throw new StartError(
        'store',
        'an erasure run is in progress: start the service, and stop it when dke status shows idle; nothing was changed',
      );
    const copy = await openTarget(target, `${path}.part`, ring);
    try {
      let findings: readonly string[] = [];
      const report = await copyWhole(store, copy.store, {
        clock: systemClock,
        authenticateRow: (...of) => ring.authenticateRow(...of),
        check: async (source, arrived) => {
          const [before, after] = [
            await verifyStore({ store: { read: source }, ring, root, core }),
            await verifyStore({ store: { read: arrived }, ring, root, core }),
          ];
          if (JSON.stringify(before) !== JSON.stringify(after))
            throw new StartError('store', 'the copy does not match the original: nothing was copied');
          findings = after.findings;
        },
      });
      await copy.finish();
      // Its numbers are those of the other store.
      forgetPosition(config.dataDirectory);
      return { ...report, findings };
    } catch (error) {
      await copy.abandon().catch(() => undefined);
      throw error;
    }
  } catch (error) {
    throw toStartError(error, config);
  } finally {
    await opened.close();
  }
};

const declaredWay = (config: Config, name: string): DeclaredWay => {
  const found = config.root.providers.find((way) => way.name === name);
  if (found === undefined)
    throw new StartError('config', `no root provider ${name} is declared: add it under [[root.providers]] first`);
  return found;
};

const operator = (): Actor => ({
  kind: 'service',
  id: 'host',
  name: `user ${process.getuid?.() ?? 0} of the service's host`,
  requestId: newId(systemClock.now()),
  peer: null,
});

/** How long a token of `recoverAdministrator` lives: long enough to make another one. */
const recoveredMs = 24 * 3_600_000;

/**
 * Makes an administrator token while the service is stopped: for an operator of the host when no
 * administrator can sign in. Needs the root key, and is recorded. Throws StartError.
 */
export const recoverAdministrator = async (
  config: Config,
  ask: AskPassphrase,
): Promise<{ readonly token: string; readonly expiresAt: number }> => {
  const opened = await openOffline(config, ask);
  try {
    const { store, core, ring } = opened;
    const actor = operator();
    const expiresAt = systemClock.now() + recoveredMs;
    // A name of its own: an earlier one may still be valid.
    const name = `made on the host ${toRfc3339(systemClock.now())}`;
    const { record, token } = await createToken({ store, core, ring, clock: systemClock })(
      acrossTenants(actor, serviceTenantId),
      'the service',
      { name, expiresAt, grants: [{ role: 'administrator', scope: null, tenantId: null }] },
    );
    await store.write((tx) =>
      tx.audit.append({
        kind: 'administrator.recovered',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'token', id: record.id },
        details: { name, expiresAt: toRfc3339(expiresAt) },
      }),
    );
    return { token, expiresAt };
  } catch (error) {
    throw toStartError(error, config);
  } finally {
    await opened.close();
  }
};

/** Whether a service has the data directory. */
const isRunning = ({ dataDirectory }: Config): boolean => {
  try {
    lockDirectory(join(dataDirectory, 'lock')).release();
    return false;
  } catch (error) {
    if (error instanceof StoreError && error.message.startsWith('another server')) return true;
    throw error;
  }
};

const takenWithinMs = 60_000;
const pollMs = 100;

/** Has the service that runs give a provider a new key. Throws StartError and WayClosed. */
const rewrapRunning = async (config: Config, way: DeclaredWay, ask: AskPassphrase) => {
  const options = rootOptionsOf(config, ask);
  const { core } = options;
  const { path } = config.root;
  const opened = await openWrappedFile(options);
  if (!('head' in opened)) {
    const why = opened.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
    throw new StartError('root-key', `the root key ${path} could not be opened: ${why || 'no provider is declared'}`);
  }
  try {
    if (!opened.head.providers.some(({ name }) => name === way.name))
      throw new StartError('config', `root provider ${way.name} cannot open this root key: nothing was changed`);
    const made = await createWays(core, options.readDescriptor).make(way, ask);
    const createdAt = systemClock.now();
    try {
      requestChange(core, opened, { name: way.name, type: way.type, createdAt, ...made });
    } finally {
      core.release(made.key);
    }
    const until = systemClock.monotonic() + takenWithinMs;
    while (existsSync(changePath(path))) {
      if (systemClock.monotonic() > until) {
        dropChange(core, path);
        throw new StartError('root-key', 'the service did not accept the change within a minute: nothing was changed');
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    const { head } = readWrapped(core, path);
    const entry = head.providers.find(({ name }) => name === way.name);
    if (entry?.createdAt !== createdAt)
      throw new StartError('root-key', 'the service refused the change: its log names the reason; nothing was changed');
    return { providers: head.providers.map(({ name, type }) => ({ name, type })) };
  } finally {
    releaseWrapped(core, opened);
  }
};

export type ProviderChange = 'add' | 'remove' | 'rewrap';

/**
 * Changes what opens the root key, with its audit record. The root key itself stays. Throws
 * StartError.
 */
export const changeProvider = async (
  config: Config,
  change: ProviderChange,
  name: string,
  ask: AskPassphrase,
): Promise<{ readonly providers: readonly { readonly name: string; readonly type: string }[] }> => {
  const way = change === 'remove' ? undefined : declaredWay(config, name);
  if (change === 'rewrap' && way !== undefined && isRunning(config))
    return rewrapRunning(config, way, ask).catch((error: unknown) => {
      throw error instanceof WayClosed
        ? new StartError('root-key', error.message, { cause: error })
        : toStartError(error, config);
    });
  const opened = await openOffline(config, ask);
  const { core, store, root, wrapped } = opened;
  const made: NewWay[] = [];
  try {
    const present = wrapped?.head.providers.find((each) => each.name === name);
    if (change === 'add' && present !== undefined)
      throw new StartError(
        'config',
        `root provider ${name} already opens the root key: run ${command`dke root rewrap ${name}`}`,
      );
    if (change !== 'add' && present === undefined)
      throw new StartError('config', `root provider ${name} cannot open this root key: nothing was changed`);
    if (change === 'remove' && wrapped?.head.providers.length === 1)
      throw new StartError('config', `${name} is the only provider: add another one first`);
    if (way !== undefined) {
      const ways = createWays(core, (descriptor) => readFileSync(descriptor));
      made.push({ name, type: way.type, createdAt: systemClock.now(), ...(await ways.make(way, ask)) });
    }
    const kinds = {
      add: 'root.provider-added',
      remove: 'root.provider-removed',
      rewrap: 'root.provider-rewrapped',
    } as const;
    // The file is changed last within the transaction: what fails leaves neither the change nor its
    // record.
    await store.write(async (tx) => {
      await tx.audit.append({
        kind: kinds[change],
        actor: operator(),
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: { name, type: way?.type ?? present?.type ?? null },
      });
      // Copies of the file from before open with the former key until then.
      if (change === 'rewrap') await tx.decisions.set(rotationSetting, 'root');
      if (wrapped === undefined)
        createWrapped(core, config.root.path, made, [
          root.current,
          ...(root.previous === undefined ? [] : [root.previous]),
        ]);
      else changeWays(core, wrapped, { without: change === 'add' ? [] : [name], add: made });
    });
    const kept = (wrapped?.head.providers ?? []).filter((each) => each.name !== name);
    return { providers: [...kept, ...made].map((each) => ({ name: each.name, type: each.type })) };
  } catch (error) {
    throw error instanceof WayClosed
      ? new StartError('root-key', error.message, { cause: error })
      : toStartError(error, config);
  } finally {
    for (const { key } of made) core.release(key);
    await opened.close();
  }
};

export const rootOptionsOf = (config: Config, ask: AskPassphrase): RootOptions => {
  const { lockedBytes, allowUnlocked } = config.memory;
  const { raw } = openCore({ allowUnlocked, ...(lockedBytes === undefined ? {} : { arenaBytes: lockedBytes }) });
  return { core: raw, root: config.root, ask, readDescriptor: (descriptor) => readFileSync(descriptor) };
};
export const asStartError = (error: unknown, config: Config): unknown =>
  error instanceof WayClosed || (error instanceof CoreError && error.code === 'authentication-failed')
    ? new StartError('root-key', error.message, { cause: error })
    : toStartError(error, config);

/** A backup of the root key, also while the service runs. Throws StartError. */
export const backUpRootKey = async (config: Config, out: string, ask: AskPassphrase): Promise<RootBackup> => {
  try {
    return await backUpRoot(rootOptionsOf(config, ask), out, systemClock.now());
  } catch (error) {
    throw asStartError(error, config);
  }
};

/** Throws StartError when the root key of a backup is not the one of the database. */
export const requireEpochs = (epochs: readonly number[], needed: readonly number[]): void => {
  const missing = needed.find((each) => !epochs.includes(each));
  if (missing === undefined) return;
  throw new StartError(
    'root-key',
    `the backup has root epoch ${Math.max(...epochs)}, and the database needs ${missing}: keys were erased since, which made one of them ` +
      'useless: use the newest backup with the newest database, or start with an empty service and restore a snapshot (docs/snapshots.md); nothing was changed',
  );
};

/** Root epochs that the stored keys are sealed under; none where there is no database yet. */
const neededEpochs = async (config: Config): Promise<readonly number[]> => {
  const path = join(config.dataDirectory, 'dke.db');
  if (config.postgresql === undefined && !existsSync(path)) return [];
  const surroundings = { clock: systemClock, authenticateRow: () => '', onFatal: () => undefined };
  const store =
    config.postgresql === undefined
      ? await openStore({ path, ...surroundings })
      : await openPostgresStore({ postgres: readPostgresql(config.postgresql), ...surroundings });
  try {
    return (await store.read.keks.list()).map(({ rootEpoch }) => rootEpoch);
  } finally {
    await store.close();
  }
};

export interface RestoreChoice {
  /** Does nothing where the root key file is there, or where no key is sealed yet. */
  readonly ifMissing: boolean;
}

/**
 * Puts the root key of a backup back, while the service is stopped. Answers its epoch; undefined:
 * nothing was to be done. Throws StartError.
 */
export const restoreRootKey = async (
  config: Config,
  backup: string,
  ask: AskPassphrase,
  { ifMissing }: RestoreChoice,
): Promise<number | undefined> => {
  let lock: DirectoryLock | undefined;
  try {
    // Before the lock: the service may run.
    if (ifMissing && existsSync(config.root.path)) return undefined;
    // A node that joins has none yet.
    mkdirSync(config.dataDirectory, { recursive: true, mode: 0o700 });
    lock = lockDirectory(join(config.dataDirectory, 'lock'));
    if (ifMissing && (await neededEpochs(config)).length === 0) return undefined;
    const epoch = await restoreRoot(rootOptionsOf(config, ask), backup, systemClock.now(), async (epochs) =>
      requireEpochs(epochs, await neededEpochs(config)),
    );
    // Nothing tells whether the database is the newest one.
    if (anchorBeside(config.root.path).read() === undefined)
      recordRootRestored(config.dataDirectory, systemClock.now());
    return epoch;
  } catch (error) {
    throw asStartError(error, config);
  } finally {
    lock?.release();
  }
};
