// Asks a hardware security module for a root provider's secret, by a child process for each
// question: a vendor's library that hangs or crashes takes nothing along but the child. The secret
// comes sealed to a key of this process' addon (HPKE).

import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CoreError } from '../../../addon/core.ts';

export interface HardwarePlace {
  /** The vendor's PKCS#11 library. */
  readonly module: string;
  readonly token: string;
  /** Label of the AES key that never leaves the module. */
  readonly key: string;
  /** Mode 600; read by the child as bytes. */
  readonly pinFile: string;
  readonly timeoutSeconds: number;
}

/** What the child is asked. */
export interface HardwareQuestion {
  readonly place: HardwarePlace;
  readonly recipient: Uint8Array;
  readonly info: Uint8Array;
  /** Base64; undefined: a fresh secret. */
  readonly sealed: { readonly iv: string; readonly wrapped: string } | undefined;
}
export type HardwareAnswer =
  | { readonly secret: Uint8Array; readonly iv: string; readonly wrapped: string }
  | { readonly fault: string; readonly away: boolean };

const program = ['hardware-child.ts', 'hardware-child.js']
  .map((name) => join(import.meta.dirname, name))
  .find((path) => existsSync(path));

/** Throws CoreError: 'io' when it may go later, 'permission' when a person must do something. */
export const askHardware = (
  place: HardwarePlace,
  recipient: Uint8Array,
  info: Uint8Array,
  sealed: HardwareQuestion['sealed'],
): Promise<{ readonly secret: Buffer; readonly iv: string; readonly wrapped: string }> =>
  new Promise((resolve, reject) => {
    if (program === undefined) throw new CoreError('internal', 'the program for hardware modules is not installed');
    const child = fork(program, [], { serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    let settled = false;
    const settle = (work: () => void): void => {
      if (settled) return;
      settled = true;
      clearTimeout(limit);
      child.kill('SIGKILL');
      work();
    };
    const limit = setTimeout(() => {
      settle(() =>
        reject(
          new CoreError('io', `the hardware module ${place.module} did not answer within ${place.timeoutSeconds} s`),
        ),
      );
    }, place.timeoutSeconds * 1000);
    child.on('error', (error) =>
      settle(() => reject(new CoreError('io', `${program} did not start: ${error.message}`))),
    );
    child.on('exit', (code, signal) =>
      settle(() =>
        reject(new CoreError('io', `the library ${place.module} ended its process (${signal ?? `exit code ${code}`})`)),
      ),
    );
    child.on('message', (message) => {
      const answer = message as HardwareAnswer;
      if ('fault' in answer)
        settle(() => reject(new CoreError(answer.away ? 'io' : 'permission', `${place.module}: ${answer.fault}`)));
      else settle(() => resolve({ ...answer, secret: Buffer.from(answer.secret) }));
    });
    child.send({ place, recipient, info, sealed } satisfies HardwareQuestion);
  });
