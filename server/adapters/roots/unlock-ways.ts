// The ways to open a wrapped root file, by type: where a provider's key comes from. A way that
// cannot open now says whether it is worth asking again (a hardware module that is away) or waits
// for a person (a passphrase).

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Core, CoreError, type KekRef } from '../../../addon/core.ts';
import { labelBytes } from '../../../addon/labels.ts';
import { shortestPassphrase, shortPassphrase } from '../../base/passphrase.ts';
import { readGivenSecret } from './durable-files.ts';
import { askHardware, type HardwarePlace } from './hardware.ts';
import type { WayParameters } from './wrapped-file.ts';

/** A provider as dke.toml declares it. */
export type DeclaredWay =
  | { readonly type: 'file'; readonly name: string; readonly path: string }
  | {
      readonly type: 'passphrase';
      readonly name: string;
      /** Name of a systemd credential. */
      readonly credential: string | undefined;
      readonly file: string | undefined;
      readonly descriptor: number | undefined;
    }
  | ({ readonly type: 'pkcs11'; readonly name: string } & HardwarePlace);

/** Asks a person; undefined: there is none. The caller wipes what it gets. */
export type AskPassphrase = (question: {
  readonly name: string;
  /** True: the answer becomes the new passphrase, so the question is asked twice. */
  readonly fresh: boolean;
  /** The configuration says where it is read from, which is the default. */
  readonly declared: boolean;
}) => Promise<Buffer | undefined>;

export type WayCore = Pick<
  Core,
  | 'random'
  | 'scryptKekLater'
  | 'createRootFile'
  | 'openRootFile'
  | 'generateHpkeKey'
  | 'hpkePublicKey'
  | 'hpkeOpenKey'
  | 'hkdf'
  | 'release'
>;

/** Why a way did not open. */
export class WayClosed extends Error {
  override readonly name = 'WayClosed';
  /** Whether the same attempt may succeed later, without a change. */
  readonly retry: boolean;
  constructor(message: string, retry: boolean, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.retry = retry;
  }
}

// scrypt with N = 2^17, r = 8: 128 MiB and a good part of a second for each guess.
const scrypt = { cost: 17, r: 8, p: 1 } as const;
/** Bytes: longer than a person types, short enough for a request. */
export const longestPassphrase = 1024;

/** Without the line feed that editors and `echo` leave. */
const withoutLineEnd = (bytes: Buffer): Buffer => {
  let end = bytes.length;
  if (end > 0 && bytes[end - 1] === 0x0a) end -= 1;
  if (end > 0 && bytes[end - 1] === 0x0d) end -= 1;
  return bytes.subarray(0, end);
};

/** On a thread of its own: a service that is running answers others in the meantime. */
const deriveKey = async (core: WayCore, passphrase: Buffer, parameters: WayParameters): Promise<KekRef> => {
  const { salt, cost, r, p } = parameters;
  const bytes = withoutLineEnd(passphrase);
  if (bytes.length === 0 || bytes.length > longestPassphrase)
    throw new WayClosed(`a passphrase has 1 to ${longestPassphrase} bytes`, false);
  return core.scryptKekLater(bytes, Buffer.from(String(salt), 'hex'), Number(cost), Number(r), Number(p));
};

/** A passphrase that is read without a person; undefined: a person is asked. */
export const readDeclared = (way: Extract<DeclaredWay, { readonly type: 'passphrase' }>): Buffer | undefined => {
  if (way.credential !== undefined) {
    const folder = process.env.CREDENTIALS_DIRECTORY;
    if (folder === undefined)
      throw new WayClosed(
        `systemd passed no credentials: set LoadCredential=${way.credential}:PATH in [Service] of the unit`,
        false,
      );
    return readGivenSecret(join(folder, way.credential));
  }
  return way.file === undefined ? undefined : readGivenSecret(way.file);
};

const obtain = async (
  way: Extract<DeclaredWay, { readonly type: 'passphrase' }>,
  ask: AskPassphrase,
  fresh: boolean,
  fromDescriptor: (descriptor: number) => Buffer,
): Promise<Buffer> => {
  const { name, credential, file, descriptor } = way;
  const declared = [credential, file, descriptor].some((source) => source !== undefined);
  const given = await ask({ name, fresh, declared });
  const bytes = given ?? (descriptor === undefined ? readDeclared(way) : Buffer.from(fromDescriptor(descriptor)));
  if (bytes === undefined) throw new WayClosed('waits for its passphrase: dke root unseal', false);
  return bytes;
};

const hardwareInfo = labelBytes('dke root provider 1');

export interface Ways {
  /**
   * The key of a way that is in the file. Throws WayClosed. Whether it is the right key shows when
   * it opens the file.
   */
  open(way: DeclaredWay, parameters: WayParameters, ask: AskPassphrase): Promise<KekRef>;
  /** A key for a new way. */
  make(way: DeclaredWay, ask: AskPassphrase): Promise<{ readonly key: KekRef; readonly parameters: WayParameters }>;
  /** The key of an entered passphrase. */
  fromPassphrase(passphrase: Buffer, parameters: WayParameters): Promise<KekRef>;
}

export const createWays = (core: WayCore, fromDescriptor: (descriptor: number) => Buffer): Ways => {
  const hardware = async (
    way: Extract<DeclaredWay, { readonly type: 'pkcs11' }>,
    sealed: { readonly iv: string; readonly wrapped: string } | undefined,
  ): Promise<{ readonly key: KekRef; readonly parameters: WayParameters }> => {
    const own = core.generateHpkeKey();
    try {
      const answer = await askHardware(way, core.hpkePublicKey(own), hardwareInfo, sealed);
      const secret = core.hpkeOpenKey(own, hardwareInfo, Buffer.alloc(0), answer.secret, 'generic');
      try {
        return {
          key: core.hkdf(secret, 'sha256', Buffer.alloc(0), hardwareInfo, 'kek', 32),
          parameters: { iv: answer.iv, wrapped: answer.wrapped },
        };
      } finally {
        core.release(secret);
      }
    } finally {
      core.release(own);
    }
  };
  const keyFile = (path: string): KekRef => {
    const { current, previous } = core.openRootFile(path);
    if (previous !== undefined) core.release(previous.key);
    return current.key;
  };
  return {
    open: async (way, parameters, ask) => {
      try {
        if (way.type === 'file') return keyFile(way.path);
        if (way.type === 'pkcs11')
          return (await hardware(way, { iv: String(parameters.iv), wrapped: String(parameters.wrapped) })).key;
        const passphrase = await obtain(way, ask, false, fromDescriptor);
        try {
          return await deriveKey(core, passphrase, parameters);
        } finally {
          passphrase.fill(0);
        }
      } catch (error) {
        if (error instanceof WayClosed) throw error;
        if (error instanceof CoreError) throw new WayClosed(error.message, error.code === 'io', { cause: error });
        throw error;
      }
    },
    make: async (way, ask) => {
      if (way.type === 'file') {
        if (existsSync(way.path)) return { key: keyFile(way.path), parameters: {} };
        return { key: core.createRootFile(way.path).key, parameters: {} };
      }
      if (way.type === 'pkcs11') return hardware(way, undefined);
      const passphrase = await obtain(way, ask, true, fromDescriptor);
      try {
        if (withoutLineEnd(passphrase).length < shortestPassphrase)
          throw new WayClosed(shortPassphrase(way.name), false);
        const salt = Buffer.alloc(32);
        core.random(salt);
        const parameters = { salt: salt.toString('hex'), ...scrypt };
        return { key: await deriveKey(core, passphrase, parameters), parameters };
      } finally {
        passphrase.fill(0);
      }
    },
    fromPassphrase: (passphrase, parameters) => deriveKey(core, passphrase, parameters),
  };
};
