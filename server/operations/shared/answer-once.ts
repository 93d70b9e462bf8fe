// A request under one `Idempotency-Key` is carried out once, whichever nodes it reaches, and
// however soon one after the other. That it is carried out is written in the unit of
// work that carries it out, the first one that the request makes: so both are there or neither is,
// and of two nodes one comes first. The other one waits for the answer.

import { AsyncLocalStorage } from 'node:async_hooks';
import { command } from '../../base/command-line.ts';
import type { RowJob } from '../../base/row-jobs.ts';
import { ServiceError } from '../../base/service-error.ts';
import { Waiting } from '../../base/waits-for-approval.ts';
import { runOf } from '../../domain/node.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { KeptAnswer, StoredRequest } from '../../ports/kept-answers.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, Store } from '../../ports/store.ts';

export type { KeptAnswer };

export interface RepeatableRequest {
  /** Digest of who asks and of the key. */
  readonly id: string;
  /** Digest of what is asked. */
  readonly fingerprint: string;
  readonly requestId: string;
}

export interface IdempotencyOperations {
  /**
   * Runs `work` unless this request was carried out; the same key with another request is
   * 'conflict'.
   */
  once(
    request: RepeatableRequest,
    work: () => Promise<KeptAnswer>,
  ): Promise<{ readonly kept: KeptAnswer; readonly repeated: boolean }>;
}

/** What is carried out, until its first unit of work is committed. */
interface Claim {
  readonly row: StoredRequest;
  state: 'open' | 'written' | 'over';
}

/** Another request carries it out, or has. */
class Taken extends Error {
  override readonly name = 'Taken';
}

/**
 * What represents the node when it continues no longer with a request that was, or may have been,
 * carried out.
 */
const givenUp = 'given up';
/** How long an answer is waited for that another node is about to give. */
const waitMs = 10_000;
const askAgainMs = 50;

interface WaitPorts {
  readonly inner: Pick<Store, 'read'>;
  readonly clock: Ports['clock'];
  readonly fleet: Pick<Fleet, 'nodes'>;
}

/** Whether they are of the same request in the same run of a node. */
const isSame = (row: StoredRequest, { requestId, run }: StoredRequest): boolean =>
  row.requestId === requestId && row.run === run;
const check = (found: StoredRequest, { fingerprint }: RepeatableRequest): void => {
  if (found.integrity !== 'ok')
    throw new ServiceError('key-tampered', 'the stored answer of the first request was changed from outside', {
      hint: 'check whether it was completed before you repeat it with another Idempotency-Key',
    });
  if (found.fingerprint !== fingerprint)
    throw new ServiceError('conflict', 'this Idempotency-Key was already used for another request', {
      hint: 'use a new Idempotency-Key for a new request',
    });
};
/**
 * What another run answers to this request. Undefined: it was not carried out after all. `live`:
 * what this process is carrying out.
 */
const awaitAnswer = async (
  { inner, clock, fleet }: WaitPorts,
  live: ReadonlySet<StoredRequest>,
  request: RepeatableRequest,
  until: number,
): Promise<KeptAnswer | undefined> => {
  for (;;) {
    const found = await inner.read.idempotency.get(request.id);
    if (found === undefined) return undefined;
    check(found, request);
    if (found.answer !== null) return found.answer;
    const node = (await fleet.nodes()).find((each) => runOf(each) === found.run);
    const goesOn = node?.self ? [...live].some((row) => isSame(row, found)) : true;
    if ((node?.state !== 'active' && node?.state !== 'draining') || !goesOn)
      throw new ServiceError('conflict', 'this request was completed, but its node could not answer', {
        hint: `run ${command`dke audit list --request-id=${found.requestId}`} to see what it created`,
      });
    if (clock.monotonic() >= until)
      throw new ServiceError('unavailable', `node ${node.name} is still processing this request`, {
        hint: 'repeat it with the same Idempotency-Key to get the answer',
      });
    await new Promise((resolve) => {
      setTimeout(resolve, askAgainMs);
    });
  }
};

/**
 * Gives up a request that was, or may have been, carried out: the other nodes wait for its answer
 * no longer.
 */
const createGivingUp = (inner: Pick<Store, 'write'>, log: Ports['log']) => {
  /** What is given up, while the others are still to be told. */
  const untold = new Set<StoredRequest>();
  const giveUp = async (row: StoredRequest): Promise<void> => {
    untold.delete(row);
    try {
      await inner.write(
        async (tx) => {
          const found = await tx.idempotency.get(row.id);
          if (found !== undefined && isSame(row, found) && found.integrity === 'ok')
            await tx.idempotency.update({ ...found, run: givenUp });
        },
        { durable: false },
      );
    } catch (error) {
      untold.add(row);
      log.error('other nodes will be informed later that a request was abandoned', {
        requestId: row.requestId,
        error,
      });
    }
  };
  return {
    giveUp,
    /** Once the store can be written again. */
    tellAgain: (): void => {
      for (const row of untold) void giveUp(row);
    },
  };
};

/**
 * Whether nothing of it is carried out: the same key may try again. `written`: its first unit of
 * work was committed.
 */
const isRefused = (error: unknown, written: boolean): boolean =>
  error instanceof Waiting ||
  (error instanceof ServiceError &&
    error.code !== 'internal' &&
    error.reason !== 'unconfirmed' &&
    !(written && error.code === 'unavailable'));

/** `store` is what the operations are to write through. */
export const createIdempotency = (
  inner: Store,
  {
    clock,
    log,
    ring,
    fleet,
  }: Pick<Ports, 'clock' | 'log'> & {
    readonly ring: Pick<Ports['ring'], 'authenticateRow'>;
    readonly fleet: Pick<Fleet, 'nodes' | 'run'>;
  },
): { readonly store: Store; readonly operations: IdempotencyOperations } => {
  const claims = new AsyncLocalStorage<Claim>();
  /** What this process is carrying out. */
  const live = new Set<StoredRequest>();
  const { giveUp, tellAgain } = createGivingUp(inner, log);
  const store: Store = {
    ...inner,
    read: inner.read,
    write: async <T>(work: (tx: Repositories) => Promise<T>, options?: { readonly durable?: boolean }): Promise<T> => {
      const claim = claims.getStore();
      if (claim === undefined || claim.state !== 'open') {
        const value = await inner.write(work, options);
        tellAgain();
        return value;
      }
      const value = await inner.write(async (tx) => {
        // Two units of work of one request may run at the same time: the first writes the row of
        // the request, the second finds it.
        if (claim.state === 'open' && !(await tx.idempotency.insert(claim.row))) {
          const found = await tx.idempotency.get(claim.row.id);
          if (found === undefined || !isSame(claim.row, found)) throw new Taken();
        }
        return work(tx);
      }, options);
      claim.state = 'written';
      return value;
    },
  };

  /** Under keys of the service: a reader of the database cannot verify guesses of a body. */
  const hashed = (asked: RepeatableRequest, ids: RowJob, contents: RowJob): RepeatableRequest => ({
    ...asked,
    id: ring.authenticateRow(`idempotency id ${asked.id}`, ids),
    fingerprint: ring.authenticateRow(`idempotency fingerprint ${asked.fingerprint}`, contents),
  });
  const once: IdempotencyOperations['once'] = async (asked, work) => {
    const request = hashed(asked, 'dke request ids 1', 'dke request contents 1');
    const until = clock.monotonic() + waitMs;
    // One that was carried out before an upgrade, and is repeated after it.
    const before = await awaitAnswer({ inner, clock, fleet }, live, hashed(asked, 'earlier', 'earlier'), until);
    if (before !== undefined) return { kept: before, repeated: true };
    for (;;) {
      const given = await awaitAnswer({ inner, clock, fleet }, live, request, until);
      if (given !== undefined) return { kept: given, repeated: true };
      const row: StoredRequest = {
        ...request,
        run: fleet.run(),
        createdAt: clock.now(),
        answer: null,
        integrity: 'ok',
      };
      const claim: Claim = { row, state: 'open' };
      const isWritten = (): boolean => claim.state === 'written';
      live.add(row);
      try {
        const kept = await claims.run(claim, work);
        const written = isWritten();
        claim.state = 'over';
        // A power failure may take the answer along, not the request: then the repeat says that it
        // was carried out.
        if (written)
          await inner
            .write(
              async (tx) => {
                const found = await tx.idempotency.get(row.id);
                if (found !== undefined && isSame(row, found)) await tx.idempotency.update({ ...found, answer: kept });
              },
              { durable: false },
            )
            .catch(async (error: unknown) => {
              log.error('an answer could not be stored', { requestId: row.requestId, error });
              await giveUp(row);
            });
        return { kept, repeated: false };
      } catch (error) {
        const written = isWritten();
        claim.state = 'over';
        if (error instanceof Taken) continue;
        // The request may still be carried out, in whole or in part: the key is kept, so that a
        // repeat does not carry it out twice.
        if (!isRefused(error, written)) await giveUp(row);
        // Nothing was carried out: the row is removed, so that the same key can be used again.
        else if (written)
          await inner
            .write((tx) => tx.idempotency.remove(row.id), { durable: false })
            .catch((again: unknown) => log.error('a failed request is still stored', { error: again }));
        throw error;
      } finally {
        live.delete(row);
      }
    }
  };
  return { store, operations: { once } };
};
