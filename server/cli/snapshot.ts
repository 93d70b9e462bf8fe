// `dke snapshot`: backup and restore. A recovery key is opened here, in this process's addon; to the service goes one snapshot's key,
// sealed for one use.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Command } from 'commander';
import type { KeyRef } from '../../addon/core.ts';
import { parseBase64 } from '../base/bytes.ts';
import { parseVerifierKey, publicKeyOf } from '../base/checkpoint.ts';
import { openingContext, sealingContext } from '../base/recovery-key.ts';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { Snapshot, SnapshotRestore } from '../fronts/contract/api/snapshots.ts';
import { inspectSnapshot, readItems } from '../snapshots/reader.ts';
import { checkOf } from '../snapshots/writer.ts';
import { action, type Caller, type GlobalOptions, type Paging, paged } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { exportTo } from './files.ts';
import { copyLines } from './key-copies.ts';
import { confirm, type Output, openOutput } from './output.ts';
import { readPassphrase } from './passphrase.ts';
import { readyCore } from './recovery-key.ts';
import { openRecoveryKeyFile } from './recovery-key-file.ts';
import { resolveTenant } from './tenant.ts';

const routes = apiRoutes.snapshots;

interface RecoveryOptions {
  readonly recoveryKey?: string;
  readonly passphraseFile?: string;
}

const recoveryOptions = (command: Command): Command =>
  command
    .option('--recovery-key <file>', 'file of a recovery key that the snapshot is sealed to')
    .option(
      '--passphrase-file <file>',
      'the passphrase of that file (mode 600); asked for when absent; - for standard input',
    );

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
      if (opening === undefined) throw new CommandError('internal', 'the opening was not started');
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
  const verifier = parseVerifierKey(signer);
  if (verifier === null)
    throw new CommandError('config', `${signer} is no verifier key`, {
      hint: 'it is what dke audit log shows as verifierKey: NAME+ID+KEY',
    });
  const trusted = [publicKeyOf(verifier)];
  const fail = (error: unknown): never => {
    throw new CommandError('checks-failed', error instanceof Error ? error.message : 'the snapshot is damaged');
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
  if (recoveryKey === undefined) return { ...said, depth: 'sealed', sound: true };
  const core = readyCore();
  let opened = 0;
  await withSnapshotKey(
    { recoveryKey, ...(passphraseFile === undefined ? {} : { passphraseFile }) },
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
        if (check !== item.check) fail(new Error(`the key ${item.unitId} is not the one that went in`));
        opened += 1;
      }
    },
  ).catch((error: unknown) => (error instanceof CommandError ? Promise.reject(error) : fail(error)));
  return { ...said, depth: 'opened', keysCompared: opened, sound: true };
};

const showRestore = (output: Output, restored: SnapshotRestore): void => {
  if (output.format === 'json') {
    output.record(restored);
    return;
  }
  const { counts, stayDestroyed, activated, rules, ...rest } = restored;
  output.record(rest);
  output.list({ items: Object.entries(counts) }, [
    ['WHAT', ([table]) => table],
    ['MADE', ([, each]) => each.made],
    ['CHANGED', ([, each]) => each.changed],
    ['UNCHANGED', ([, each]) => each.unchanged],
    ['KEPT', ([, each]) => each.kept],
    ['LEFT OUT', ([, each]) => each.leftOut],
  ]);
  if (stayDestroyed.length > 0)
    output.list({ items: stayDestroyed }, [
      ['STAYS DESTROYED', (row) => row.id],
      ['NAME', (row) => row.name],
      ['SINCE', (row) => row.destroyedAt],
    ]);
  if (rules.length > 0)
    output.list({ items: rules }, [
      ['DUAL CONTROL OF', (row) => row.vaultName],
      ['MUST AGREE', (row) => row.required],
    ]);
  if (activated.length > 0)
    output.list({ items: activated }, [
      ['BECOMES ACTIVE', (row) => row.kind],
      ['BY', (row) => row.change],
      ['ID', (row) => row.id],
      ['NAME', (row) => row.name],
    ]);
};

type RestoreOptions = RecoveryOptions & {
  readonly recoveryKey: string;
  readonly into?: string;
  readonly newTenant?: string;
  readonly dryRun?: true;
  readonly confirm?: string;
};

const restore = async (caller: Caller, options: RestoreOptions, id: string): Promise<void> => {
  const { call, output } = caller;
  const { into, newTenant } = options;
  if (into !== undefined && newTenant !== undefined)
    throw new CommandError('config', 'give --into or --new-tenant, not both');
  const target = {
    ...(into === undefined ? {} : { tenantId: await resolveTenant(caller, into) }),
    ...(newTenant === undefined ? {} : { newTenant }),
  };
  const run = async (dryRun: boolean): Promise<SnapshotRestore> => {
    const answer = await openFor(caller, id, options);
    return call(routes.restore, { path: { id }, query: { dryRun: String(dryRun) }, body: { ...answer, ...target } });
  };
  if (options.dryRun === true) {
    showRestore(output, await run(true));
    return;
  }
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
    : `${row.verification.sound ? row.verification.depth : 'DAMAGED'} ${row.verification.at}`;

export const addSnapshot = (program: Command): void => {
  const noun = program.command('snapshot').summary('backup and restore of a tenant');

  noun
    .command('create')
    .description(
      'Makes a snapshot of the tenant acted in: the default one for the whole platform, unless --of names another by its id.',
    )
    .option('--of <tenant-id>', 'the tenant')
    .action(
      action<{ readonly of?: string }>(async ({ call, output }, options) => {
        output.record(await call(routes.create, { body: options.of === undefined ? {} : { tenantId: options.of } }));
      }),
    );

  paged(noun.command('list').description('Lists snapshots, newest first.'))
    .option('--of <tenant-id>', 'of this tenant only')
    .option('--state <state>', 'making, held, deleted, purged, failed or missing')
    .action(
      action<Paging & { readonly of?: string; readonly state?: string }>(async ({ call, output }, { of, ...query }) => {
        output.list(await call(routes.list, { query: { ...query, tenantId: of } }), [
          ['ID', (row) => row.id],
          ['AT', (row) => row.at],
          ['TENANT', (row) => row.tenantId],
          ['STATE', (row) => row.state],
          ['KEYS', (row) => row.keys],
          ['ERASED', (row) => row.erased],
          ['BYTES', (row) => row.size],
          ['VERIFIED', short],
        ]);
      }),
    );

  noun
    .command('show <snapshot-id>')
    .description('Shows a snapshot and the copies of it that left the service.')
    .action(
      action(async ({ call, output }, _, id = '') => {
        const snapshot = await call(routes.get, { path: { id } });
        const exported = await call(routes.exports, { path: { id } });
        if (output.format === 'json') return output.record({ ...snapshot, exports: exported.items });
        output.record(snapshot);
        if (exported.items.length > 0)
          output.list(exported, [
            ['EXPORTED', (row) => row.at],
            ['BY', (row) => row.actorName],
          ]);
      }),
    );

  recoveryOptions(
    noun
      .command('verify [snapshot-id]')
      .description(
        'Checks that a snapshot is complete and that its signature is valid; with a recovery key, opens all of it and compares every key.',
      )
      .option('--file <file>', 'a copy on this machine: needs no service and no token')
      .option('--signer <key>', 'with --file: the verifierKey of the service that made it (dke audit log)'),
  ).action(
    async (
      id: string | undefined,
      options: RecoveryOptions & { readonly file?: string; readonly signer?: string },
      command: Command,
    ) => {
      if (options.file !== undefined) {
        const output = openOutput(command.optsWithGlobals<GlobalOptions>().output, (text) => {
          process.stdout.write(text);
        });
        if (options.signer === undefined)
          throw new CommandError('config', '--file needs --signer', {
            hint: 'it is what dke audit log shows as verifierKey',
          });
        output.record(await verifyFile(options.file, options.signer, options));
        return;
      }
      if (id === undefined) throw new CommandError('config', 'name a snapshot, or a copy with --file');
      await action(async (caller) => {
        const { recoveryKey } = options;
        const verified =
          recoveryKey === undefined
            ? await caller.call(routes.verify, { path: { id }, body: {} })
            : await caller.call(routes.verifyOpened, {
                path: { id },
                body: await openFor(caller, id, { ...options, recoveryKey }),
              });
        caller.output.record(verified);
        if (verified.verification?.sound === false)
          throw new CommandError('checks-failed', verified.verification.finding ?? 'the snapshot is damaged', {
            hint: 'create another one now; check the disk of the snapshot folder',
          });
      })(options, command);
    },
  );

  noun
    .command('export <snapshot-id>')
    .description('Writes a copy into a new file; audited. A key that is destroyed later is still in the copy.')
    .requiredOption('--out <file>', 'the new file')
    .action(
      action<{ readonly out: string }>(async ({ stream, output }, { out }, id = '') => {
        await exportTo(out, (into) => stream(routes.export, { path: { id } }, into));
        output.record({ id, file: out });
      }),
    );

  noun
    .command('import <file>')
    .description('Brings a copy into the service. What is destroyed there is taken out of it at once.')
    .option('--signer <key>', 'verifierKey of the service that made it, when it is another one')
    .action(
      action<{ readonly signer?: string }>(async ({ upload, output }, { signer }, path = '') => {
        const size = await stat(path).then(
          ({ size: bytes }) => bytes,
          (error: NodeJS.ErrnoException) => {
            throw new CommandError('permission', `${path} cannot be read (${error.code})`);
          },
        );
        output.record(await upload(routes.import, { query: { signer } }, createReadStream(path), size));
      }),
    );

  noun
    .command('delete <snapshot-id>')
    .description('Deletes a snapshot; undelete brings it back until its time is over.')
    .action(
      action(async ({ call, output }, _, id = '') => {
        output.record(await call(routes.delete, { path: { id } }));
      }),
    );
  noun
    .command('undelete <snapshot-id>')
    .description('Brings a deleted snapshot back.')
    .action(
      action(async ({ call, output }, _, id = '') => {
        output.record(await call(routes.undelete, { path: { id } }));
      }),
    );

  recoveryOptions(
    noun
      .command('restore <snapshot-id>')
      .description('Brings a tenant back as it was. Destroyed keys stay destroyed; what was made since stays.')
      .option('--into <tenant>', 'id or name of an empty tenant, when it is not the one that the snapshot is of')
      .option('--new-tenant <name>', 'a new tenant')
      .option('--dry-run', 'show what would be made, changed and left, and change nothing')
      .option('--confirm <id>', 'the first eight characters of its id, instead of typing them'),
  ).action(
    action<RecoveryOptions & Omit<RestoreOptions, 'recoveryKey'>>(async (caller, options, id = '') => {
      const { recoveryKey } = options;
      if (recoveryKey === undefined)
        throw new CommandError('config', 'a recovery key is needed', {
          hint: 'give --recovery-key with the file of one that the snapshot is sealed to: dke snapshot show names them',
        });
      await restore(caller, { ...options, recoveryKey }, id);
    }),
  );

  const schedule = noun.command('schedule').summary('when snapshots are made, and how long they are kept');
  schedule
    .command('show')
    .description('Shows the schedule, which is set in the configuration file of the service.')
    .action(
      action(async ({ call, output }) => {
        output.record(await call(routes.schedule));
      }),
    );

  noun
    .command('of-key <key>')
    .description(
      'Lists where a key may still be: exported snapshots that contain it, also when it was destroyed since, and copies of it ' +
        'in other tenants.',
    )
    .action(
      action(async ({ call, output, resolve }, _, key = '') => {
        const { exported, copies } = await call(routes.ofKey, { path: { id: await resolve('key', key) } });
        const found = { items: exported, copies };
        output.list(found, [
          ['SNAPSHOT', (row) => row.snapshotId],
          ['OF', (row) => row.snapshotAt],
          ['EXPORTED', (row) => row.at],
          ['BY', (row) => row.actorName],
        ]);
        for (const line of copyLines(copies)) output.say(line);
      }),
    );
};
