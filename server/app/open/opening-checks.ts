// What a start learns only by opening it: locked memory, the database, the root key, and the keys
// under it. The start opens them by the same functions and with the same errors (data.ts); here
// nothing is changed, and a service that runs is not disturbed (docs/decisions/0055).

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Core } from '../../../addon/core.ts';
import { openCore } from '../../adapters/crypto/open-core.ts';
import { createTenantKeks } from '../../adapters/crypto/tenant-keks.ts';
import { openRoot } from '../../adapters/roots/open-root.ts';
import { readDeclared } from '../../adapters/roots/unlock-ways.ts';
import { readWrapped } from '../../adapters/roots/wrapped-file.ts';
import { inspectDatabase, readStoredKeks } from '../../adapters/store/migrations/inspect-database.ts';
import { quarantineName, readQuarantine } from '../../adapters/store/node-state.ts';
import { inspectPostgres } from '../../adapters/store/store.ts';
import { type Check, type Finding, failed, notAsked, ok, warning } from '../../base/diagnostic-checks.ts';
import { StartError } from '../../base/start-error.ts';
import { toText } from '../../domain/difference.ts';
import type { RootProvider } from '../../ports/root-provider.ts';
import type { Repositories, StoredKek } from '../../ports/store.ts';
import { type CheckedHost, configOf } from '../start-checks.ts';
import { toStartError } from '../start-errors.ts';
import { readPostgresql, requireOwnDatabase } from './storage.ts';

export interface OpenedHost extends CheckedHost {
  /** Bytes that the unit of the service may lock; undefined: no unit is known. */
  readonly unitMemory: () => number | undefined;
  core?: Core;
  /** Undefined: they cannot be read without changing the files of the database. */
  keks?: readonly StoredKek[] | undefined;
  root?: RootProvider;
}

/** What a start locks when dke.toml does not say (addon/binding/keys.cc). */
const usualArena = 4 << 20;

const checkMemory = (host: OpenedHost): Finding => {
  const { lockedBytes, allowUnlocked } = configOf(host).memory;
  const needed = lockedBytes ?? usualArena;
  const arena = lockedBytes === undefined ? {} : { arenaBytes: lockedBytes };
  const unit = host.unitMemory();
  // The limits of this shell are not those of the service.
  host.core = openCore({ ...arena, allowUnlocked: allowUnlocked || unit !== undefined }).raw;
  if (unit === undefined) return ok(`${needed / 1024} KiB can be locked here`);
  if (unit >= needed || allowUnlocked) return ok(`the unit of the service may lock ${Math.floor(unit / 1024)} KiB`);
  throw new StartError(
    'memory',
    `the unit of the service may lock ${Math.floor(unit / 1024)} KiB of memory for keys, and ${needed / 1024} KiB are needed`,
    { fix: 'set LimitMEMLOCK=64M in [Service]: systemctl edit dke-server' },
  );
};

const checkDatabase = async (host: OpenedHost): Promise<Finding> => {
  const config = configOf(host);
  if (config.postgresql === undefined) {
    const path = join(config.dataDirectory, 'dke.db');
    host.keks = [];
    if (!existsSync(path)) return ok(`${path} does not exist yet: the first start creates it`);
    const { fault, evidence, fix } = inspectDatabase(path, 'all of it');
    if (fault) throw new StartError('store', evidence, { fix });
    host.keks = readStoredKeks(path);
    return ok(evidence);
  }
  const { schema, begun, keks } = await inspectPostgres(readPostgresql(config.postgresql));
  if (keks.length === 0 && !begun) requireOwnDatabase(config);
  host.keks = keks;
  const place = `${config.postgresql.database} on ${config.postgresql.host}`;
  return ok(schema === undefined ? `${place} is empty: the first start creates its tables` : `${place}, ${schema}`);
};

/**
 * A database that differs from what this node has confirmed is not used until an operator confirms
 * it.
 */
const checkQuarantine = (host: OpenedHost): Finding => {
  const found = readQuarantine(join(configOf(host).dataDirectory, quarantineName));
  return found === undefined
    ? ok('no quarantine is recorded')
    : failed(
        `the service is in quarantine: ${found.finding.differences.map(toText).join('; ')}`,
        'restore the right database, or accept this one: dke quarantine show, then dke quarantine confirm',
      );
};

const coreOf = ({ core }: OpenedHost): Core => {
  if (core === undefined) throw new Error('the core was not opened');
  return core;
};

/** Only a person, the unit or a module has what opens it. */
const sealedFinding = (
  path: string,
  reasons: readonly { readonly name: string; readonly type: string; readonly reason: string }[],
): Finding => {
  const why = reasons.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  const isWrong = reasons.every(({ reason }) =>
    / is wrong$|is not the one that sealed$|dke root add-provider/.test(reason),
  );
  return isWrong
    ? failed(
        `the root key ${path} could not be opened: ${why}`,
        'put back what opens it, or unseal the service: dke root unseal',
      )
    : warning(
        `the root key ${path} is not opened here: ${why}`,
        'a start that cannot open it waits for: dke root unseal',
      );
};

const checkRoot = async (host: OpenedHost): Promise<Finding> => {
  const { path, providers } = configOf(host).root;
  const core = coreOf(host);
  if (host.keks?.length === 0 && !existsSync(path)) {
    for (const way of providers) if (way.type === 'passphrase' && way.file !== undefined) readDeclared(way)?.fill(0);
    return ok(`${path} does not exist yet: the first start creates it`);
  }
  // A hardware module counts wrong PINs: only the service logs in to it.
  const here = providers.filter(({ type }) => type !== 'pkcs11');
  if (providers.length > 0 && here.length === 0 && existsSync(path)) {
    readWrapped(core, path);
    return notAsked(`${path} is whole; only the service logs in to ${providers.map(({ name }) => name).join(', ')}`);
  }
  const options = {
    core,
    root: { path, providers: here },
    ask: () => Promise.resolve(undefined),
    readDescriptor: (descriptor: number) => readFileSync(descriptor),
  };
  const opened = await openRoot(options, false, 'unchanged');
  if (opened.state !== 'open') return sealedFinding(path, opened.reasons);
  host.root = opened.root;
  return ok(`${path}, epoch ${opened.root.current.epoch}`);
};

const checkKeys = async (host: OpenedHost): Promise<Finding> => {
  const { keks, root } = host;
  if (root === undefined) return notAsked('the root key was not opened here');
  if (keks === undefined) return notAsked('the database was not closed: the next start reads its log first');
  const opened = createTenantKeks(coreOf(host));
  try {
    const read = { keks: { list: () => Promise.resolve(keks) } } as unknown as Repositories;
    await opened.unlock(read, root);
    return ok(`it opens ${keks.length} key encryption keys`);
  } finally {
    opened.clear();
    root.release();
  }
};

/** Errors of the parts are those of a start. */
const asAtStart =
  (run: (host: OpenedHost) => Finding | Promise<Finding>) =>
  async (host: OpenedHost): Promise<Finding> => {
    try {
      return await run(host);
    } catch (error) {
      throw toStartError(error, configOf(host));
    }
  };

export const openingChecks: readonly Check<OpenedHost>[] = [
  { id: 'memory', layer: 'memory', title: 'keys can be locked in memory', needs: ['configuration'], run: checkMemory },
  {
    id: 'database',
    layer: 'database',
    title: 'the database can be used',
    needs: ['database-file', 'named-files'],
    run: checkDatabase,
  },
  {
    id: 'quarantine',
    layer: 'database',
    title: 'the database is the one that was confirmed',
    needs: ['data'],
    run: checkQuarantine,
  },
  {
    id: 'root-key',
    layer: 'root key',
    title: 'the root key can be opened',
    needs: ['database', 'memory', 'root-folder'],
    run: checkRoot,
  },
  {
    id: 'keys',
    layer: 'root key',
    title: 'the root key opens the keys of the database',
    needs: ['root-key'],
    run: checkKeys,
  },
].map(({ run, ...check }) => ({ ...check, run: asAtStart(run) }));
