// `dke snapshot`: backup and restore. A recovery key is opened here, in this process's addon; to
// the service goes one snapshot's key, sealed for one use.

import type { Command } from 'commander';
import type { KeyRef } from '../../../addon/core.ts';
import { inspectSnapshot, readItems } from '../../adapters/archives/inspect-snapshot.ts';
import { checkOf } from '../../adapters/archives/write-snapshot.ts';
import { parseBase64 } from '../../base/bytes.ts';
import { publicKeyOf } from '../../base/checkpoint.ts';
import { openingContext, sealingContext } from '../../base/recovery-key.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { Snapshot, SnapshotRestore } from '../../contract/api/snapshots-routes.ts';
import { type Caller, openCaller, outputOf } from '../service/caller.ts';
import { addFlags, addNoun, type Given } from '../service/command-rows.ts';
import { globalsOf } from '../service/context-file.ts';
import { openRecoveryKeyFile } from '../service/recovery-key-file.ts';
import { readVerifier, verifierHelp, verifierText } from '../service/verifier-key.ts';
import { readPassphrase } from '../terminal/ask-secret.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { confirm, type Output } from '../terminal/output.ts';
import { exportTo, openLargeFile } from '../terminal/secret-files.ts';
import { copyLines } from './key-copies.ts';
import { readyCore } from './recovery-key.ts';

const routes = operations.snapshots;

const recoveryFlags = {
  '--recovery-key <file>': 'file of a recovery key that the snapshot is sealed to',
  '--passphrase-file <file>': 'file with its passphrase (mode 600), - for standard input; without it, the command asks',
} as const;
interface RecoveryOptions {
  readonly recoveryKey?: string | undefined;
  readonly passphraseFile?: string | undefined;
}

/** Opens a snapshot's key with the recovery key, and hands it to `use`. */
const withSnapshotKey = async <T>(
  { recoveryKey, passphraseFile }: RecoveryOptions & { readonly recoveryKey: string },
  find: (
    recoveryKeyId: string,
  ) => Promise<{ readonly snapshotId: string; readonly tenantId: string; readonly sealedKey: string }>,
  use: (key: KeyRef) => T | Promise<T>,
): Promise<T> => {
  const core = readyCore();
  const recovery = await openRecoveryKeyFile(core, recoveryKey, () => readPassphrase(passphraseFile));
  try {
    const { snapshotId, tenantId, sealedKey } = await find(recovery.id);
    const { info, aad } = sealingContext(snapshotId, tenantId, recovery.id);
    const key = core.hpkeOpenKey(recovery.key, info, aad, parseBase64(sealedKey) ?? Buffer.alloc(0), 'generic');
    try {
      return await use(key);
    } finally {
      core.release(key);
    }
  } finally {
    core.release(recovery.key);
  }
};

/** What answers an opening of the service. */
const openFor = async (
  { call }: Pick<Caller, 'call'>,
  id: string,
  options: RecoveryOptions & { readonly recoveryKey: string },
): Promise<{ readonly openingId: string; readonly sealedKey: string }> => {
  let opening: { readonly id: string; readonly publicKey: string } | undefined;
  return withSnapshotKey(
    options,
    async (recoveryKeyId) => {
      const begun = await call(routes.open, { path: { id }, body: { recoveryKeyId } });
      opening = begun;
      return begun;
    },
    (key) => {
      if (opening === undefined) throw new CommandError('internal', 'no opening was started');
      const { info, aad } = openingContext(id, opening.id);
      const to = parseBase64(opening.publicKey) ?? Buffer.alloc(0);
      return { openingId: opening.id, sealedKey: readyCore().hpkeSealKey(to, info, aad, key).toString('base64') };
    },
  );
};

/** Everything that can be said of a file without a service. */
const verifyFile = async (
  path: string,
  signer: string,
  { recoveryKey, passphraseFile }: RecoveryOptions,
): Promise<object> => {
  const trusted = [publicKeyOf(readVerifier(signer))];
  const fail = (error: unknown): never => {
    throw new CommandError('checks-failed', error instanceof Error ? error.message : 'the snapshot is damaged', {
      hint: 'check the name of the file, or verify another snapshot: dke snapshot list',
    });
  };
  const { preface, closing, erased, size } = await inspectSnapshot(path, trusted).catch(fail);
  const said = {
    id: preface.snapshotId,
    tenantId: preface.tenantId,
    at: preface.at,
    size,
    units: closing.units,
    erased: erased.length,
  };
  if (recoveryKey === undefined) return { ...said, depth: 'sealed', valid: true };
  const core = readyCore();
  let opened = 0;
  await withSnapshotKey(
    { recoveryKey, passphraseFile },
    async (id) => {
      const found = preface.recipients.find(({ recoveryKeyId }) => recoveryKeyId === id);
      if (found === undefined) throw new CommandError('denied', 'the snapshot is not sealed to this recovery key');
      return { snapshotId: preface.snapshotId, tenantId: preface.tenantId, sealedKey: found.sealedKey };
    },
    async (key) => {
      for await (const item of readItems(core, path, key)) {
        if (item.kind !== 'material' || item.key === null) continue;
        const check = checkOf(core, item.key);
        core.release(item.key);
        if (check !== item.check) fail(new Error(`the key ${item.unitId} differs from the one that was stored`));
        opened += 1;
      }
    },
  ).catch((error: unknown) => (error instanceof CommandError ? Promise.reject(error) : fail(error)));
  return { ...said, depth: 'opened', keysCompared: opened, valid: true };
};

const showRestore = (output: Output, restored: SnapshotRestore): void => {
  if (output.raw) {
    output.record(restored);
    return;
  }
  const { counts, stayDestroyed, withoutValue, activated, rules, ...rest } = restored;
  output.record(rest);
  output.list(
    { items: Object.entries(counts) },
    {
      WHAT: ([table]) => table,
      CREATED: ([, each]) => each.created,
      CHANGED: ([, each]) => each.changed,
      UNCHANGED: ([, each]) => each.unchanged,
      KEPT: ([, each]) => each.kept,
      OMITTED: ([, each]) => each.omitted,
    },
  );
  if (stayDestroyed.length > 0)
    output.list({ items: stayDestroyed }, { 'STAYS DESTROYED': 'id', NAME: 'name', SINCE: 'destroyedAt' });
  if (withoutValue.length > 0) output.list({ items: withoutValue }, { 'VALUE IS DAMAGED': 'id', LABEL: 'label' });
  if (rules.length > 0) output.list({ items: rules }, { 'DUAL CONTROL OF': 'vaultName', 'MUST AGREE': 'required' });
  if (activated.length > 0)
    output.list({ items: activated }, { 'BECOMES ACTIVE': 'kind', BY: 'change', ID: 'id', NAME: 'name' });
};

const restoreFlags = {
  '--into <tenant>': 'id or name of an empty tenant; default: the tenant of the snapshot',
  '--new-tenant <name>': 'a new tenant',
  '--dry-run': 'show what would be created, changed and kept, and change nothing',
  '--confirm <id>': 'the first eight characters of its id, instead of typing them',
  ...recoveryFlags,
} as const;

const restore = async (caller: Caller, options: Given<typeof restoreFlags>, id: string): Promise<void> => {
  const { call, output } = caller;
  const { recoveryKey, into, newTenant } = options;
  if (recoveryKey === undefined)
    throw new CommandError('config', 'a recovery key is required', {
      hint: 'pass --recovery-key with the file of a recovery key that the snapshot is sealed to: dke snapshot show names them',
    });
  if (into !== undefined && newTenant !== undefined)
    throw new CommandError('config', 'use --into or --new-tenant, not both');
  const target = {
    ...(into === undefined ? {} : { tenantId: into }),
    ...(newTenant === undefined ? {} : { newTenant }),
  };
  const run = async (dryRun: boolean): Promise<SnapshotRestore> => {
    const answer = await openFor(caller, id, { ...options, recoveryKey });
    return call(routes.restore, { path: { id }, query: { dryRun: String(dryRun) }, body: { ...answer, ...target } });
  };
  if (options.dryRun === true) return showRestore(output, await run(true));
  const snapshot = await call(routes.get, { path: { id } });
  await confirm(
    `The snapshot of ${snapshot.at} is restored; --dry-run shows what that changes.`,
    id.slice(0, 8),
    options.confirm,
  );
  showRestore(output, await run(false));
};

const short = (row: Snapshot): string | null =>
  row.verification === null
    ? null
    : `${row.verification.valid ? row.verification.depth : 'DAMAGED'} ${row.verification.at}`;

const verifyStored = async (caller: Caller, id: string, options: RecoveryOptions): Promise<void> => {
  const { recoveryKey } = options;
  const verified =
    recoveryKey === undefined
      ? await caller.call(routes.verify, { path: { id }, body: {} })
      : await caller.call(routes.verifyOpened, {
          path: { id },
          body: await openFor(caller, id, { ...options, recoveryKey }),
        });
  caller.output.record(verified);
  if (verified.verification?.valid === false)
    throw new CommandError('checks-failed', verified.verification.finding ?? 'the snapshot is damaged', {
      hint: 'create another one now; check the disk of the snapshot folder',
    });
};

const verifyFlags = {
  '--file <file>': 'an exported copy on this machine; needs no service and no token',
  '--signer <key>': `with --file: who created it: ${verifierHelp}`,
  ...recoveryFlags,
} as const;

export const addSnapshot = (program: Command): void => {
  const noun = addNoun(program, 'snapshot');

  noun.row(
    routes.create,
    'create',
    'Creates a snapshot of your tenant. With permissions for the whole platform: of the default tenant, or of the tenant in --of.',
    { options: { '--of <tenant>': 'the tenant' } },
  );
  noun.row(routes.list, 'list', 'Lists snapshots, newest first.', {
    options: {
      '--of <tenant>': 'only this tenant',
      '--state <state>': 'creating, available, deleted, purged, failed or missing',
    },
    columns: {
      ID: 'id',
      AT: 'at',
      TENANT: 'tenantId',
      STATE: 'state',
      KEYS: 'keys',
      ERASED: 'erased',
      BYTES: 'size',
      VERIFIED: short,
    },
  });
  noun.act(
    'show <snapshot-id>',
    'Shows a snapshot and its exported copies.',
    {},
    async ({ call, output }, _, id = '') => {
      const snapshot = await call(routes.get, { path: { id } });
      const exported = await call(routes.exports, { path: { id } });
      if (output.raw) return output.record({ ...snapshot, exports: exported.items });
      output.record(snapshot);
      if (exported.items.length > 0) output.list(exported, { EXPORTED: 'at', BY: 'actorName' });
    },
  );
  addFlags(noun.command.command('verify [snapshot-id]'), verifyFlags)
    .description(
      'Checks that a snapshot is complete and that its signature is valid; with a recovery key, also opens it completely and compares every key.',
    )
    .action(async (id: string | undefined, options: Given<typeof verifyFlags>, command: Command) => {
      const { file, signer } = options;
      if (file === undefined) {
        if (id === undefined) throw new CommandError('config', 'name a snapshot, or a copy with --file');
        return verifyStored(openCaller(globalsOf(command)), id, options);
      }
      if (signer === undefined)
        throw new CommandError('config', '--file needs --signer', {
          hint: 'dke audit log shows it as verifierKey',
        });
      outputOf(command).record(await verifyFile(file, signer, options));
    });
  noun.act(
    'export <snapshot-id>',
    'Writes a copy into a new file; audited. A key that is destroyed later is still in the copy.',
    { '--out <file>': { help: 'the new file', required: true } },
    async ({ stream, output }, { out }, id = '') => {
      await exportTo(out, (into) => stream(routes.export, { path: { id } }, into));
      output.record({ id, file: out });
    },
  );
  noun.act(
    'import <file>',
    'Imports a copy into the service. Keys that were destroyed since are removed from it immediately.',
    { '--signer <verifier-key>': `who created it, if it is another service: ${verifierHelp}` },
    async ({ upload, output }, { signer }, path = '') => {
      const { from, size } = await openLargeFile(path);
      output.record(
        await upload(
          routes.import,
          { query: { signer: signer === undefined ? undefined : verifierText(signer) } },
          from,
          size,
        ),
      );
    },
  );
  noun.row(routes.delete, 'delete <snapshot-id>', 'Deletes a snapshot. Until it is purged, undelete restores it.');
  noun.row(routes.undelete, 'undelete <snapshot-id>', 'Restores a deleted snapshot.');
  noun.act(
    'restore <snapshot-id>',
    'Restores a tenant to the state of a snapshot. Destroyed keys stay destroyed, and everything created since stays.',
    restoreFlags,
    (caller, options, id = '') => restore(caller, options, id),
  );
  noun
    .noun('schedule', 'when snapshots are created, and how long they are kept')
    .row(routes.schedule, 'show', 'Shows the schedule, which is set in the configuration file of the service.');
  noun.row(
    routes.ofKey,
    'of-key <key>',
    'Lists where a key may still be, even if it was destroyed since: in other tenants, in exported snapshots and in backups.',
    {
      text: (output, copies) => {
        output.list(copies, { PLACE: 'place', ID: 'id', AT: 'at', WAITS: ({ waits }) => (waits ? 'yes' : 'no') });
        for (const line of copyLines(copies)) output.say(line);
      },
    },
  );
};
