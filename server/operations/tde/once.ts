// A request that makes or changes token objects is carried out once, however often it is sent: an agent whose connection ends before
// the answer sends it again, to any node, under the same key. What was done is written down in the transaction that did it, so that
// there is no moment in which one is true and the other is not. Kept without the values of keys, which a digest could give away.

import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, StoredObject } from '../../ports/store.ts';
import type { TdeCaller } from '../index.ts';

const idOf = ({ application }: TdeCaller, key: string): string =>
  createHash('sha256').update(`${application.id}\n${key}`).digest('base64url');

/** The objects of the request when it was carried out before. Throws 'conflict' when that was another one. */
export const findCarriedOut = async (
  from: Pick<Repositories, 'tdeRequests' | 'objects'>,
  caller: TdeCaller,
): Promise<readonly StoredObject[] | undefined> => {
  const { once } = caller;
  if (once === undefined) return undefined;
  const known = await from.tdeRequests.get(idOf(caller, once.key));
  if (known === undefined) return undefined;
  if (known.fingerprint !== once.fingerprint)
    throw new ServiceError('conflict', 'this Idempotency-Key was used with another request', {
      hint: 'use a new key for a new request',
    });
  const objects: StoredObject[] = [];
  for (const handle of known.handles) {
    const object = await from.objects.get(handle);
    if (object === undefined || object.destroyedAt !== null)
      throw new ServiceError('key-destroyed', 'what this request has made is destroyed');
    objects.push(object);
  }
  return objects;
};

/** Runs `work` in a unit of work, unless the same request has: then its objects are answered, in the same order. */
export const writeOnce = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  caller: TdeCaller,
  work: (tx: Repositories) => Promise<readonly StoredObject[]>,
): Promise<readonly StoredObject[]> =>
  store.write(async (tx) => {
    const before = await findCarriedOut(tx, caller);
    if (before !== undefined) return before;
    const objects = await work(tx);
    const { once } = caller;
    if (once !== undefined)
      await tx.tdeRequests.insert({
        id: idOf(caller, once.key),
        fingerprint: once.fingerprint,
        handles: objects.map(({ handle }) => handle),
        at: clock.now(),
      });
    return objects;
  });

/** The one object of such a unit of work. */
export const writeOneOnce = async (
  ports: Pick<Ports, 'store' | 'clock'>,
  caller: TdeCaller,
  work: (tx: Repositories) => Promise<StoredObject>,
): Promise<StoredObject> => {
  const [object] = await writeOnce(ports, caller, async (tx) => [await work(tx)]);
  if (object === undefined) throw new ServiceError('internal', 'nothing was made');
  return object;
};
