// One use of a recovery key: the service starts an opening, a separate thread answers it, and the
// call that needs it sends the answer.

import { ApiProblem, send } from '../api/client.ts';
import type { SnapshotOpening } from '../api/types.ts';
import { describeFile, RecoveryFault, type RecoveryFile } from './recovery-key.ts';
import type { Answered, Asked } from './worker.ts';

/** Enough of a file to recognize its kind: a recovery key has less than 400 bytes. */
const mostBytes = 4096;

/** The head of a chosen file; the fault if it is not a recovery key. */
export const readRecoveryFile = async (file: Blob): Promise<RecoveryFile | RecoveryFault> => {
  const bytes = new Uint8Array(await file.slice(0, mostBytes).arrayBuffer());
  try {
    return describeFile(bytes);
  } catch (error) {
    if (error instanceof RecoveryFault) return error;
    throw error;
  } finally {
    bytes.fill(0);
  }
};

const answer = (asked: Asked): Promise<string> =>
  new Promise<string>((resolve, reject) => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
    const end = (finish: () => void): void => {
      worker.terminate();
      finish();
    };
    const fail = (detail: string): void =>
      end(() =>
        reject(new ApiProblem({ status: 0, code: 'recovery-key', title: 'The recovery key cannot be used', detail })),
      );
    worker.addEventListener('message', ({ data }: MessageEvent<Answered>) => {
      if ('sealedKey' in data) end(() => resolve(data.sealedKey));
      else fail(data.fault);
    });
    worker.addEventListener('error', () => fail('The browser could not start the thread that opens the recovery key.'));
    worker.postMessage(asked, [asked.passphrase.buffer]);
  });

/**
 * The members of a body that answer an opening of the snapshot. The passphrase is copied: the
 * caller keeps and wipes its own.
 */
export const openSnapshot = async (
  snapshotId: string,
  file: Blob,
  { id: recoveryKeyId }: RecoveryFile,
  passphrase: Uint8Array,
): Promise<{ readonly openingId: string; readonly sealedKey: string }> => {
  const opening = await send<SnapshotOpening>(
    { method: 'POST', path: `/api/snapshots/${encodeURIComponent(snapshotId)}/openings`, body: { recoveryKeyId } },
    { idempotencyKey: crypto.randomUUID() },
  );
  return { openingId: opening.id, sealedKey: await answer({ file, passphrase: passphrase.slice(), opening }) };
};
