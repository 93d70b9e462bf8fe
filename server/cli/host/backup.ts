// `dke backup`: the whole service on the embedded database, on its host. The recovery key is opened
// here, in this process's addon.

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { openBackupKey } from '../../adapters/archives/backup-file.ts';
import { defaultConfig, loadHostConfig } from '../../app/config/config.ts';
import type { BackupOpening } from '../../app/host/restore-backup.ts';
import type { Verifier } from '../../base/checkpoint.ts';
import { readyCore } from '../commands/recovery-key.ts';
import { addNoun, configFlag, type Given, passphraseFlag } from '../service/command-rows.ts';
import { openRecoveryKeyFile } from '../service/recovery-key-file.ts';
import { readVerifier, verifierHelp } from '../service/verifier-key.ts';
import { askFor, readPassphrase } from '../terminal/ask-secret.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readLines } from '../terminal/secret-files.ts';
import { verifyAuditLog } from '../verify/audit-export.ts';
import { requireSound } from './verify-store.ts';

const openFlags = {
  '--recovery-key <file>': {
    help: 'file of a recovery key that was registered when the backup was created',
    required: true,
  },
  '--recovery-passphrase-file <file>':
    'with the passphrase of the recovery key (mode 600); without it, the command asks',
  '--signer <key>': `who must have signed the backup: ${verifierHelp}`,
  '--audit-log <file>':
    'an export of the audit log that must name the backup, also where a former key has signed it; needs --signer',
  '--root-backup <file>': 'file that dke root backup wrote',
  '--passphrase-file <file>': 'with the passphrase of the root key or of its backup (mode 600)',
} as const;

/** The recovery key's file is opened once, also where the backup is read twice. */
const keyOpener = ({ recoveryKey, recoveryPassphraseFile }: Given<typeof openFlags>): BackupOpening['openKey'] => {
  let recovery: ReturnType<typeof openRecoveryKeyFile> | undefined;
  return async (core, preface) => {
    recovery ??= openRecoveryKeyFile(readyCore(), recoveryKey, () => readPassphrase(recoveryPassphraseFile));
    const { id, key } = await recovery;
    return openBackupKey(core, preface, id, key);
  };
};

/** The digests of the backups that a log names which is what its key has signed. */
const loggedIn = async (file: string, verifier: Verifier): Promise<ReadonlySet<string>> => {
  const digests = new Set<string>();
  const { findings, hidden } = await verifyAuditLog(readLines(file), verifier, [], ({ kind, details }) => {
    const { digest } = (details ?? {}) as { readonly digest?: unknown };
    if (kind === 'service.backed-up' && typeof digest === 'string') digests.add(digest);
  });
  const [finding = hidden > 0 ? 'it is the part of one tenant' : undefined] = findings;
  if (finding === undefined) return digests;
  throw new CommandError('checks-failed', `${file} does not tell which backups are of this service: ${finding}`, {
    hint: 'dke audit export writes the complete log; dke audit verify names everything that differs',
  });
};

const trustOf = async ({ signer, auditLog }: Given<typeof openFlags>): Promise<BackupOpening['trust']> => {
  if (signer === undefined && auditLog !== undefined)
    throw new CommandError('config', '--audit-log needs --signer', { hint: 'dke audit log shows it as verifierKey' });
  if (signer === undefined) return undefined;
  const verifier = readVerifier(signer);
  return { verifier, logged: auditLog === undefined ? undefined : await loggedIn(auditLog, verifier) };
};

const openingOf = async (options: Given<typeof openFlags>, newPassphraseFile?: string): Promise<BackupOpening> => ({
  openKey: keyOpener(options),
  trust: await trustOf(options),
  doubt: (why) => process.stderr.write(`dke: not authentic: ${why}\n`),
  rootBackup: options.rootBackup,
  ask: askFor(options.passphraseFile, newPassphraseFile),
});

const placeFlags = {
  '--out <file>': 'the new file',
  '--folder <folder>': 'instead of --out: a new file in this folder, with the time in its name',
  '--keep <count>':
    'with --folder: afterwards, remove the oldest backups of this service with such names, so that this many are left',
} as const;

/**
 * Time comes first, so that the order of names is that of time. The end is of the node: services
 * that share a folder share no name.
 */
const datedName = /^dke-\d{8}T\d{6}Z(?:-[0-9a-f]{12})?\.dkebackup$/;
/**
 * The dated files to remove, so that `keep` are left. The new one stays, also where a clock that
 * was set back makes it the oldest. `idOf`: of which backup of the service that made the new one a
 * file is; no other file counts, nor a second one of the same backup, and none of them is removed.
 */
export const outdated = async (
  names: readonly string[],
  made: string,
  keep: number,
  idOf: (name: string) => Promise<string | undefined>,
): Promise<readonly string[]> => {
  const others = new Map<string, string>();
  const own = await idOf(made);
  for (const name of names.filter((each) => datedName.test(each) && each !== made).sort()) {
    const id = await idOf(name);
    if (id !== undefined && id !== own && !others.has(id)) others.set(id, name);
  }
  const byAge = [...others].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, name]) => name);
  return byAge.slice(0, Math.max(0, byAge.length - (keep - 1)));
};
/** A name that is free in the folder: that of the first second from `at` on that no backup has. */
export const freeNameIn = (folder: string, at: number, nodeId: string): string => {
  for (let second = at; ; second += 1000) {
    const time = new Date(second).toISOString().replace(/[-:]|\.\d+/g, '');
    const name = `dke-${time}-${nodeId.slice(-12)}.dkebackup`;
    if (!existsSync(join(folder, name))) return name;
  }
};

/** Where the backup goes, and what goes for it once it is complete. */
const placeOf = ({ out, folder, keep }: Given<typeof placeFlags>, nodeId: () => string) => {
  if ((out === undefined) === (folder === undefined))
    throw new CommandError('config', 'name one of --out and --folder', { hint: 'dke backup create --help' });
  if (keep !== undefined && (folder === undefined || !/^[1-9]\d{0,4}$/.test(keep)))
    throw new CommandError('config', '--keep takes a number from 1, and needs --folder');
  const file = resolve(folder === undefined ? (out ?? '') : join(folder, freeNameIn(folder, Date.now(), nodeId())));
  return {
    file,
    removeOld: async (idOf: (path: string) => Promise<string | undefined>): Promise<readonly string[]> => {
      if (folder === undefined || keep === undefined) return [];
      const idOfName = (name: string): Promise<string | undefined> => idOf(join(folder, name));
      const old = await outdated(readdirSync(folder), basename(file), Number(keep), idOfName);
      // One that a power failure brings back goes at the next backup.
      for (const name of old) rmSync(join(folder, name));
      return old;
    },
  };
};

const damaged = 'compare with another backup; the damage existed when the backup was created (docs/faults.md)';

export const addBackup = (program: Command): void => {
  const noun = addNoun(program, 'backup');

  noun.local(
    'create',
    'Writes the whole service into a new file that the registered recovery keys open: tenants, keys, users, tokens, the audit ' +
      'log and the configuration, without the root key (dke root backup) and the files of the configuration. The service may run. Run ' +
      'it on the host, as the user of the service. It is signed: by the service that runs, or by this command, which then opens the root key.',
    { ...placeFlags, ...configFlag, ...passphraseFlag },
    async (output, { config, passphraseFile, ...options }) => {
      const loaded = loadHostConfig(config, process.cwd());
      const { backupOfOneService, createBackup, nodeIdOf } = await import('../../app/host/create-backup.ts');
      const { file, removeOld } = placeOf(options, () => nodeIdOf(loaded));
      const version = program.version() ?? 'unknown';
      const ask = askFor(passphraseFile, undefined);
      const report = await createBackup(loaded, version, file, ask);
      const removed = await removeOld((path) => backupOfOneService(path, file));
      output.record(options.keep === undefined ? report : { ...report, removed });
      if (report.rootKeyBackup !== 'current')
        process.stderr.write(
          `dke: ${report.rootKeyBackup === 'none' ? 'there is no backup of the root key' : 'the backup of the root key is of another epoch'}: ` +
            'without one, this backup cannot be used: dke root backup --out FILE\n',
        );
    },
  );
  noun.local(
    'verify <backup>',
    'Opens and checks a complete backup on any machine: who signed it, every byte, and its database. With --root-backup, also every key, as ' +
      'dke verify does. Without --signer, the backup is not authentic: everyone who has a public recovery key can make one that opens. ' +
      'It uses a folder under TMPDIR, which it removes afterwards.',
    openFlags,
    async (output, options, backup = '') => {
      const { verifyBackup } = await import('../../app/host/restore-backup.ts');
      const report = await verifyBackup(defaultConfig(process.cwd()), resolve(backup), await openingOf(options));
      output.record({ ...report, valid: report.findings.length === 0 });
      requireSound(report.findings, damaged);
    },
  );
  noun.local(
    'restore <backup>',
    'Restores the complete service into the data directory of the configuration, which must be empty. It shows how dke.toml differs from ' +
      'the one of the backup, which is written only with --apply-configuration. The service starts in quarantine: dke quarantine show lists ' +
      'what is missing since then.',
    {
      ...openFlags,
      ...configFlag,
      '--apply-configuration': 'write the dke.toml of the backup, where there is none',
      '--new-passphrase-file <file>': 'with the passphrase of a root provider that dke.toml declares (mode 600)',
    },
    async (output, options, backup = '') => {
      const { restoreBackup } = await import('../../app/host/restore-backup.ts');
      const restored = await restoreBackup(resolve(backup), {
        ...(await openingOf(options, options.newPassphraseFile)),
        configPath: options.config === undefined ? undefined : resolve(options.config),
        workingDirectory: process.cwd(),
        applyConfiguration: options.applyConfiguration === true,
        differs: (lines) => {
          if (lines.length === 0) return;
          process.stderr.write(
            `dke: dke.toml differs from the one of the backup, which is not applied (- only here, + only there):\n${lines.join('\n')}\n`,
          );
        },
      });
      output.record({ ...restored, valid: restored.findings.length === 0 });
      output.say(
        'Next: dke doctor --config FILE names the files that are missing; start the service, and confirm the quarantine.',
      );
      requireSound(restored.findings, damaged);
    },
  );
};
