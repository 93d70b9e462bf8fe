// Opens the root key as the configuration declares it: the file alone (`file-root.ts`), or a
// wrapped file by the first of its providers that opens. When none does, the root stays sealed
// until an operator gives a passphrase, or a provider comes back.

import { existsSync } from 'node:fs';
import { type Core, CoreError } from '../../../addon/core.ts';
import { command } from '../../base/command-line.ts';
import type { RootProvider } from '../../ports/root-provider.ts';
import { rootFilesBeside } from './durable-files.ts';
import { openFileRoot } from './file-root.ts';
import { type AskPassphrase, createWays, type DeclaredWay, WayClosed, type Ways } from './unlock-ways.ts';
import {
  clearDrafts,
  createWrapped,
  formatOf,
  type OpenWrapped,
  readWrapped,
  unlockWrapped,
  type WrappedFile,
} from './wrapped-file.ts';
import { wrappedRoot } from './wrapped-root.ts';

export interface DeclaredRoot {
  readonly path: string;
  /** Empty: the file holds the key itself. */
  readonly providers: readonly DeclaredWay[];
}

export interface SealedRoot {
  readonly state: 'sealed';
  /** Why each provider did not open. */
  readonly reasons: readonly { readonly name: string; readonly type: DeclaredWay['type']; readonly reason: string }[];
  /** A passphrase for whichever provider it fits. Undefined: for none. Wipes nothing. */
  unseal(passphrase: Buffer): Promise<RootProvider | undefined>;
  /** Asks those providers again that may have come back. */
  retry(): Promise<RootProvider | undefined>;
}
export interface OpenRoot {
  readonly state: 'open';
  readonly root: RootProvider;
  /** What an operator should know, one line each. */
  readonly remarks: readonly string[];
}

export interface RootOptions {
  readonly core: Core;
  readonly root: DeclaredRoot;
  readonly ask: AskPassphrase;
  /** Reads a declared descriptor to its end; it can be read once. */
  readonly readDescriptor: (descriptor: number) => Buffer;
}

const wrong = (error: unknown): boolean => error instanceof CoreError && error.code === 'authentication-failed';

/** Opens the file by the first declared provider that does. */
const openByWays = async (
  { core, root, ask }: RootOptions,
  ways: Ways,
  file: WrappedFile,
  declared: readonly DeclaredWay[],
): Promise<OpenWrapped | SealedRoot['reasons']> => {
  const reasons: SealedRoot['reasons'][number][] = [];
  for (const way of declared) {
    const { name, type } = way;
    const entry = file.head.providers.find((each) => each.name === name);
    if (entry === undefined) {
      reasons.push({ name, type, reason: `is not in ${root.path} yet: ${command`dke root add-provider ${name}`}` });
      continue;
    }
    try {
      const key = await ways.open(way, entry.parameters, ask);
      try {
        return unlockWrapped(core, file, entry, key);
      } finally {
        core.release(key);
      }
    } catch (error) {
      if (!(error instanceof WayClosed) && !wrong(error)) throw error;
      const what = type === 'passphrase' ? 'the passphrase is wrong' : 'its key is not the one that sealed';
      reasons.push({ name, type, reason: error instanceof WayClosed ? error.message : what });
    }
  }
  return reasons;
};

const remarksOn = ({ root }: RootOptions, { head }: WrappedFile): readonly string[] => [
  ...root.providers
    .filter(({ name }) => !head.providers.some((each) => each.name === name))
    .map(
      ({ name }) =>
        `root provider ${name} is declared and does not open the root yet: ${command`dke root add-provider ${name}`}`,
    ),
  ...head.providers
    .filter(({ name }) => !root.providers.some((each) => each.name === name))
    .map(
      ({ name }) =>
        `root provider ${name} opens the root and is not declared: declare it, or ${command`dke root remove-provider ${name}`}`,
    ),
];

/** Root key files beside the root key that are neither it nor the key file of a provider. */
export const copiesOfRoot = (path: string, providers: readonly DeclaredWay[]): readonly string[] =>
  rootFilesBeside(path).filter((file) => !providers.some((way) => way.type === 'file' && way.path === file));

const copyRemarks = ({ path, providers }: DeclaredRoot): readonly string[] =>
  copiesOfRoot(path, providers).map(
    (copy) =>
      `${copy} is a root key file, or was one: it may open older databases, and no rotation changes it; move it away, or destroy it`,
  );

/** Opens a wrapped file that is there, for changes to it. */
export const openWrappedFile = async (options: RootOptions): Promise<OpenWrapped | SealedRoot['reasons']> => {
  const file = readWrapped(options.core, options.root.path);
  return openByWays(options, createWays(options.core, options.readDescriptor), file, options.root.providers);
};

/**
 * `create`: nothing is sealed under a root yet, so that a missing file is made. `unchanged`: only
 * to look; with `create` false. Throws CoreError 'io', 'permission', 'format',
 * 'bad-argument' with what to do.
 */
export const openRoot = async (
  options: RootOptions,
  create: boolean,
  unchanged?: 'unchanged',
): Promise<OpenRoot | SealedRoot> => {
  const { core, root, ask } = options;
  const { path, providers } = root;
  if (unchanged === undefined && (existsSync(path) || create)) clearDrafts(core, path);
  if (providers.length === 0) {
    if (existsSync(path) && formatOf(path) !== 1)
      throw new CoreError('format', `the root key file ${path} is wrapped: declare its providers ([[root.providers]])`);
    return { state: 'open', root: openFileRoot(core, path, create), remarks: copyRemarks(root) };
  }
  const ways = createWays(core, options.readDescriptor);
  if (!existsSync(path)) {
    if (!create)
      throw new CoreError(
        'io',
        `the root key file ${path} is missing: put it back; without it the store cannot be opened`,
      );
    const made = [];
    try {
      for (const way of providers) {
        const { name, type } = way;
        made.push({ name, type, createdAt: Date.now(), ...(await ways.make(way, ask)) });
      }
      createWrapped(core, path, made);
    } catch (error) {
      if (!(error instanceof WayClosed)) throw error;
      throw new CoreError(
        'permission',
        `the root key cannot be created: ${error.message}; the first start requires every declared provider`,
      );
    } finally {
      for (const { key } of made) core.release(key);
    }
  }
  if (formatOf(path) === 1)
    throw new CoreError(
      'format',
      `the root key file ${path} is not wrapped yet, but providers are declared: run ${command`dke root add-provider ${providers[0]?.name ?? 'NAME'}`}`,
    );
  const file = readWrapped(core, path);
  const opened = await openByWays(options, ways, file, providers);
  const finish = (open: OpenWrapped): RootProvider => wrappedRoot(core, open);
  if (!Array.isArray(opened)) {
    return {
      state: 'open',
      root: finish(opened as OpenWrapped),
      remarks: [...remarksOn(options, file), ...copyRemarks(root)],
    };
  }
  return {
    state: 'sealed',
    reasons: opened as SealedRoot['reasons'],
    unseal: async (passphrase) => {
      for (const entry of readWrapped(core, path).head.providers) {
        if (entry.type !== 'passphrase') continue;
        const key = await ways.fromPassphrase(passphrase, entry.parameters);
        try {
          return finish(unlockWrapped(core, readWrapped(core, path), entry, key));
        } catch (error) {
          if (!wrong(error)) throw error;
        } finally {
          core.release(key);
        }
      }
      return undefined;
    },
    retry: async () => {
      const again = await openByWays(
        { ...options, ask: () => Promise.resolve(undefined) },
        ways,
        readWrapped(core, path),
        providers.filter(({ type }) => type !== 'passphrase'),
      );
      return Array.isArray(again) ? undefined : finish(again as OpenWrapped);
    },
  };
};
