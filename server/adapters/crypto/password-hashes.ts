// Passwords as Argon2id (RFC 9106), by the core, on threads that give way to others and one at a
// time: sign-ins do not take the processor from the data path. Addresses are served in turn, and
// those from which a right password came before have every second turn: people who guess, from
// however many addresses, delay a sign-in from a known address by a few hashes. What is kept is a
// PHC string, so that parameters can be raised and old hashes remain valid.

import { timingSafeEqual } from 'node:crypto';
import { createFairQueue, QueueFull } from '../../base/fair-queue.ts';
import { LimitRefused } from '../../base/limit-refusals.ts';
import { originsOf } from '../../base/origins.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { PasswordHashes } from '../../ports/people.ts';

export interface Argon2Parameters {
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
}

/**
 * The second recommendation of RFC 9106 section 4, in one lane: a lane more would be a processor
 * more.
 */
export const usualParameters: Argon2Parameters = { memory: 65_536, passes: 3 };

/** Addresses (IPv6: /64) that are remembered. */
const mostKnown = 10_000;

const saltBytes = 16;
const hashBytes = 32;
/** Version 1.3 of the algorithm, the only one. */
const phc = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

export const createPasswordHashes = (
  { random, argon2idLater }: Pick<CryptoCore, 'random' | 'argon2idLater'>,
  parameters: Argon2Parameters = usualParameters,
): PasswordHashes => {
  const derive = (password: Uint8Array, salt: Buffer, { memory, passes }: Argon2Parameters): Promise<Buffer> =>
    argon2idLater(password, salt, memory, passes, hashBytes);
  const newSalt = (): Buffer => {
    const salt = Buffer.alloc(saltBytes);
    random(salt);
    return salt;
  };
  const queue = createFairQueue({ running: 1, waiting: 16, waitingOfStrangers: 64 });
  /** Where a right password came from, the latest last: their sign-ins have every second turn. */
  const known = new Set<string>();
  const remember = (origin: string): void => {
    known.delete(origin);
    known.add(origin);
    for (const oldest of known) {
      if (known.size <= mostKnown) break;
      known.delete(oldest);
    }
  };
  const originOf = (peer: string | null): string => originsOf(peer)[0][1];
  const pass = async <T>(origin: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await queue.run(work, origin, known.has(origin));
    } catch (error) {
      if (!(error instanceof QueueFull)) throw error;
      throw new LimitRefused('sign-ins', 'too many people are signing in at the same time', {
        hint: 'try again in a few seconds',
        retryAfterSeconds: 5,
        cause: error,
      });
    }
  };
  // For users that are not there: the same work, and no password that gives this hash.
  const dummySalt = newSalt();

  return {
    hash: (password, peer) =>
      pass(originOf(peer), async () => {
        const salt = newSalt();
        const hash = await derive(password, salt, parameters);
        const text = `$argon2id$v=19$m=${parameters.memory},t=${parameters.passes},p=1$${unpadded(salt)}$${unpadded(hash)}`;
        hash.fill(0);
        return text;
      }),

    verify: (password, stored, peer) => {
      const origin = originOf(peer);
      return pass(origin, async () => {
        const [, memory, passes, salt, hash] = phc.exec(stored ?? '') ?? [];
        if (salt === undefined || hash === undefined) {
          (await derive(password, dummySalt, parameters)).fill(0);
          return 'wrong';
        }
        const used = { memory: Number(memory), passes: Number(passes) };
        const found = await derive(password, Buffer.from(salt, 'base64'), used);
        const holds = timingSafeEqual(found, Buffer.from(hash, 'base64'));
        found.fill(0);
        if (!holds) return 'wrong';
        remember(origin);
        return used.memory < parameters.memory || used.passes < parameters.passes ? 'outdated' : 'holds';
      });
    },
  };
};
