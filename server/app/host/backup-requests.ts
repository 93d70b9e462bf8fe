// How `dke backup create` asks the service that runs on this host for the recipients of a backup
// and for its signature, without a token and without the root key's passphrase: one file in the
// data directory asks, another one answers.
//
// 1. Who chooses a request: the service's own user, who alone can write into the data directory
//    (mode 700, the owner of each file is checked). This user
//    can read the root key's file and the memory of the service.
// 2. What proves it: parseRequest. Nothing of it is signed as it is: the service writes the text.
// 3. Whose: the id of a request is in its answer; one that is left over answers nothing.
// 4. How large, how often: 4 KiB; one at a time (backup.lock); the command waits for two minutes at
//    most.
// 5. Lost, repeated, older: signing again gives the same bytes. After a crash the next command
//    replaces the request.
// 6. What others see: names and public keys, which are in the database, too.

import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { readOwnFile } from '../../adapters/roots/durable-files.ts';
import { parseBase64, toBase64 } from '../../base/bytes.ts';
import { replaceFile } from '../../base/durable-files.ts';
import { isId, newId } from '../../base/ids.ts';
import { formatRecoveryKey, parseRecoveryKey } from '../../base/recovery-key.ts';
import { ServiceError } from '../../base/service-error.ts';
import { StartError } from '../../base/start-error.ts';
import { systemClock } from '../../base/time.ts';
import type { BackupToSign } from '../../domain/service-backup.ts';
import type { BackupAuthority } from '../../ports/backup-authority.ts';
import type { Log } from '../../ports/log.ts';

const requestPath = (dataDirectory: string): string => join(dataDirectory, 'backup-request');
const answerPath = (dataDirectory: string): string => join(dataDirectory, 'backup-answer');
const mostBytes = 4096;
const answeredWithinMs = 120_000;
const lookEveryMs = 50;

/** `sign` is null where the recipients are asked for. */
interface BackupRequest {
  readonly id: string;
  readonly sign: BackupToSign | null;
}
type BackupAnswer = { readonly id: string } & (
  | { readonly recipients: readonly string[] }
  | { readonly signer: string; readonly signature: string }
  /** `class`: of the error of the command. */
  | { readonly refused: string; readonly class: 'config' | 'store' }
);

const readSmall = (path: string): unknown => {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  if (size > 16 * mostBytes) throw new RangeError(`${path} is too long`);
  return JSON.parse(readOwnFile(path).toString('utf8'));
};

/** Undefined: it is none. */
export const parseRequest = (value: unknown): BackupRequest | undefined => {
  const { id, sign } = (value ?? {}) as Partial<BackupRequest>;
  if (typeof id !== 'string' || !isId(id)) return undefined;
  if (sign === null) return { id, sign };
  const { backupId, digest, recoveryKeyIds } = (sign ?? {}) as Partial<BackupToSign>;
  const fits =
    typeof backupId === 'string' &&
    isId(backupId) &&
    typeof digest === 'string' &&
    parseBase64(digest)?.length === 32 &&
    Array.isArray(recoveryKeyIds) &&
    recoveryKeyIds.every((each) => /^[0-9a-f]{16}$/.test(String(each)));
  return fits ? { id, sign: { backupId, digest, recoveryKeyIds: recoveryKeyIds.map(String) } } : undefined;
};

/** The service's side: answers what the command has asked since the last check. */
export const createBackupAnswers = (
  dataDirectory: string,
  authority: BackupAuthority,
  /** Why nothing is signed now. */
  closed: () => string | undefined,
  log: Pick<Log, 'warn'>,
) => {
  let answered: string | undefined;
  const answer = async ({ id, sign }: BackupRequest): Promise<BackupAnswer> => {
    const why = closed();
    if (why !== undefined) return { id, refused: why, class: 'store' };
    try {
      if (sign === null)
        return { id, recipients: (await authority.recipients()).map(({ publicKey }) => formatRecoveryKey(publicKey)) };
      const { signer, signature } = await authority.sign(sign);
      return { id, signer, signature: toBase64(signature) };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const refused = error.hint === undefined ? error.message : `${error.message}: ${error.hint}`;
      return { id, refused, class: error.code === 'conflict' ? 'config' : 'store' };
    }
  };
  return {
    run: async (): Promise<void> => {
      const path = requestPath(dataDirectory);
      if (!existsSync(path)) return;
      try {
        const request = parseRequest(readSmall(path));
        if (request === undefined || request.id === answered) return;
        answered = request.id;
        replaceFile(answerPath(dataDirectory), JSON.stringify(await answer(request)));
      } catch (error) {
        // The command may have removed it in the meantime.
        if (existsSync(path)) log.warn('a request of dke backup create could not be answered', { error });
      }
    },
  };
};

/** The command's side: asks the service that has the data directory. */
export const askService = (dataDirectory: string): BackupAuthority => {
  const ask = async (sign: BackupToSign | null): Promise<BackupAnswer> => {
    const id = newId(systemClock.now());
    const path = answerPath(dataDirectory);
    rmSync(path, { force: true });
    try {
      replaceFile(requestPath(dataDirectory), JSON.stringify({ id, sign } satisfies BackupRequest));
      for (const until = systemClock.monotonic() + answeredWithinMs; systemClock.monotonic() < until; ) {
        const found = existsSync(path) ? (readSmall(path) as BackupAnswer) : undefined;
        if (found?.id !== id) await setTimeout(lookEveryMs);
        else if ('refused' in found)
          throw new StartError(found.class === 'config' ? 'config' : 'store', String(found.refused));
        else return found;
      }
    } finally {
      for (const each of [requestPath(dataDirectory), path]) rmSync(each, { force: true });
    }
    throw new StartError(
      'store',
      'the service does not answer: unseal it, restart it if it runs an earlier version, or stop it, and run the command again; nothing was left behind',
    );
  };
  const unexpected = (): StartError =>
    new StartError('store', 'the service answers something else: use the same version of the command and the service');
  return {
    recipients: async () => {
      const answer = await ask(null);
      const keys = 'recipients' in answer ? answer.recipients.map(parseRecoveryKey) : [];
      const valid = keys.filter((key) => key !== null);
      if (valid.length === 0 || valid.length !== keys.length) throw unexpected();
      return valid;
    },
    sign: async (backup) => {
      const answer = await ask(backup);
      const signature = 'signature' in answer ? parseBase64(answer.signature) : null;
      if (!('signer' in answer) || signature?.length !== 64) throw unexpected();
      return { signer: answer.signer, signature };
    },
  };
};
