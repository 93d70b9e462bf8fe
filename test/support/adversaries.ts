// The three who bring files to a service, for the matrices of test/contract:
// - TS signs with a key that dke.toml names for a migration.
// - OF has an old database with the root key of that time, and so a former audit key.
// - BW writes where snapshots and backups are kept, and has no key of the service.
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type ForgedItem, type Forger, makeForger } from './forged-snapshots.ts';
import { administrator, type OpenedService, openTestService, registerCaller } from './open-service.ts';
import { restart } from './shared.ts';
import { makeRecoveryKey } from './snapshot-files.ts';
import { handOf, handWith, type SnapshotHand } from './snapshots.ts';
import { copyStored } from './test-store.ts';

/** The file of a snapshot that arrives from outside, and what an import of it answers. */
export interface ForeignFile {
  readonly name: string;
  readonly id: string;
  readonly file: Buffer;
  /** Whom the importing person names as its signer. */
  readonly signer: string | undefined;
  readonly answer: 'imported' | 'forbidden' | 'key-tampered' | 'conflict';
}

export async function* piecesOf(file: Buffer): AsyncGenerator<Uint8Array> {
  yield file;
}
export const snapshotFileOf = ({ config }: Pick<OpenedService, 'config'>, id: string): Buffer =>
  readFileSync(join(config.snapshots.directory, `${id}.dkesnap`));

/**
 * The service as it was, opened elsewhere by the holder of its database and its root key.
 * `opened` has another audit key.
 */
export const holdOldDatabase = async (
  opened: OpenedService,
  folder: string,
  options: { readonly toml: string; readonly ofOld?: string },
): Promise<OpenedService> => {
  await opened.stop();
  cpSync(opened.folder, folder, { recursive: true });
  // Without this file, a copy beside the original counts as one on another host, and may start.
  rmSync(join(folder, 'dke-data', 'instance'), { force: true });
  for (const each of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (each.isDirectory()) chmodSync(join(each.parentPath, each.name), 0o700);
  await copyStored(opened.folder, folder);
  await restart(opened, { toml: options.toml });
  await opened.operations.audit.rotateKey(administrator);
  return openTestService({ folder, toml: options.ofOld ?? options.toml });
};

export interface Adversaries {
  /**
   * The keys of TS, who also has the recovery key, and of BW, who signs with a key that counts
   * nowhere.
   */
  readonly trusted: Forger;
  readonly untrusted: Forger;
  readonly recovery: ReturnType<typeof makeRecoveryKey>;
  /** For dke.toml. */
  readonly signers: string;
  end(): void;
}
export const makeAdversaries = (): Adversaries => {
  const recovery = makeRecoveryKey();
  const [trusted, untrusted] = [makeForger(recovery), makeForger(recovery)];
  return {
    trusted,
    untrusted,
    recovery,
    signers: `trusted_signers = ["${trusted.verifier}"]\n`,
    end: () => {
      trusted.end();
      untrusted.end();
    },
  };
};

export interface Prepared {
  readonly hand: SnapshotHand;
  /** One of each; that of TS is another one each time. */
  files(): Promise<readonly ForeignFile[]>;
  /** What TS and BW have read of a snapshot: they change it. */
  readonly items: readonly ForgedItem[];
}

/**
 * The files of all adversaries, with content of the default tenant. Registers the recovery key, and
 * starts the service again: `folder` gets the old database.
 */
export const prepareFiles = async (
  opened: OpenedService,
  { trusted, untrusted, recovery }: Adversaries,
  folder: string,
  options: { readonly toml: string; readonly ofOld?: string },
): Promise<Prepared> => {
  await handOf(opened, recovery);
  const { tenantId } = administrator;
  const { vaults, keys } = opened.operations;
  const vault = await vaults.create(administrator, { name: 'of all adversaries' });
  await keys.create(administrator, { name: 'of all adversaries', vaultId: vault.id });
  await registerCaller(opened, 'of all adversaries');
  const old = await holdOldDatabase(opened, folder, options);
  const hand = handWith(opened, recovery);
  const id = await hand.make(tenantId);
  const items = await trusted.read(opened, id);
  const forged = await untrusted.write(items, tenantId);
  const former = (await old.operations.audit.log()).verifierKey;
  const ofOld = (await old.operations.snapshots.create(administrator, tenantId)).id;
  const damaged = snapshotFileOf(opened, id);
  const middle = Math.floor(damaged.length / 2);
  damaged.writeUInt8(damaged.readUInt8(middle) ^ 1, middle);
  const oldFile = snapshotFileOf(old, ofOld);
  const fixed: readonly ForeignFile[] = [
    {
      ...{ name: 'OF: signed by a former audit key, as our own', id: ofOld, file: oldFile },
      ...{ signer: undefined, answer: 'forbidden' },
    },
    {
      ...{ name: 'OF: signed by a former audit key, which is named', id: ofOld, file: oldFile },
      ...{ signer: former, answer: 'forbidden' },
    },
    { name: 'BW: signed by another key', ...forged, signer: untrusted.verifier, answer: 'forbidden' },
    { name: 'BW: signed by another key, as our own', ...forged, signer: undefined, answer: 'conflict' },
    {
      ...{ name: 'BW: our own file, changed', id: id, file: damaged },
      ...{ signer: undefined, answer: 'key-tampered' },
    },
  ];
  await old.stop();
  const files: Prepared['files'] = async () => {
    const theirs = await trusted.write(items, tenantId);
    return [{ name: 'TS: content of the tenant', ...theirs, signer: trusted.verifier, answer: 'imported' }, ...fixed];
  };
  return { hand, files, items };
};
