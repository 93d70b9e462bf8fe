// A request that creates or changes token objects is carried out once, however often it is sent: an
// agent whose connection ends before the answer sends it again, to any node, under the same key.
// What was done is stored in the transaction that did it, so both are there or neither is. An agent
// that cannot learn the outcome in time withdraws the request (withdraw-request.ts); what is
// withdrawn is not carried out afterwards. Stored without the values of keys, which a digest could
// reveal.

import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/service-error.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import type { TdeCaller } from './tde-operations.ts';

/** What a request has done with its objects. */
type Deed = 'created' | 'changed';
/** In the place of the fingerprint, where a request was withdrawn. */
const withdrawn = 'withdrawn';

const fingerprintOf = (deed: Deed, { fingerprint }: { readonly fingerprint: string }): string =>
  `${deed} ${fingerprint}`;

const idOf = ({ application }: TdeCaller, key: string): string =>
  createHash('sha256').update(`${application.id}\n${key}`).digest('base64url');

/**
 * The objects of the request when it was carried out before. Throws 'conflict' when that was
 * another one, or when it was withdrawn.
 */
export const findCarriedOut = async (
  from: Pick<Repositories, 'tdeRequests' | 'objects'>,
  caller: TdeCaller,
  deed: Deed = 'created',
): Promise<readonly StoredObject[] | undefined> => {
  const { once } = caller;
  if (once === undefined) return undefined;
  const known = await from.tdeRequests.get(idOf(caller, once.key));
  if (known === undefined) return undefined;
  if (known.fingerprint === withdrawn)
    throw new ServiceError('conflict', 'this request was withdrawn', {
      hint: 'use a new Idempotency-Key for a new request',
      reason: 'withdrawn',
    });
  if (known.fingerprint !== fingerprintOf(deed, once))
    throw new ServiceError('conflict', 'this Idempotency-Key was already used for another request', {
      hint: 'use a new Idempotency-Key for a new request',
    });
  const objects: StoredObject[] = [];
  for (const handle of known.handles) {
    const object = await from.objects.get(handle);
    if (object === undefined || object.destroyedAt !== null)
      throw new ServiceError('key-destroyed', 'what this request has created is destroyed');
    objects.push(object);
  }
  return objects;
};

/**
 * Runs `work` in a unit of work, unless the same request has: then its objects are answered, in the
 * same order.
 */
export const writeOnce = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  caller: TdeCaller,
  work: (tx: Repositories) => Promise<readonly StoredObject[]>,
  deed: Deed = 'created',
): Promise<readonly StoredObject[]> =>
  store.write(async (tx) => {
    const before = await findCarriedOut(tx, caller, deed);
    if (before !== undefined) return before;
    const objects = await work(tx);
    const { once } = caller;
    if (once !== undefined)
      await tx.tdeRequests.put({
        id: idOf(caller, once.key),
        fingerprint: fingerprintOf(deed, once),
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
  deed: Deed = 'created',
): Promise<StoredObject> => {
  const [object] = await writeOnce(ports, caller, async (tx) => [await work(tx)], deed);
  if (object === undefined) throw new ServiceError('internal', 'nothing was created');
  return object;
};

/**
 * Marks the caller's request with this key as withdrawn, in the transaction that undoes it. `undo`
 * gets the live objects that it created, and answers whether it destroyed them: if not, the request
 * stays as it is. Not called when there are none. Answers what is left of the request.
 */
export const withdrawOnce = async (
  tx: Repositories,
  caller: TdeCaller,
  key: string,
  now: number,
  undo: (created: readonly StoredObject[]) => Promise<boolean>,
): Promise<'not-carried-out' | 'undone' | 'kept'> => {
  const id = idOf(caller, key);
  const known = await tx.tdeRequests.get(id);
  if (known?.fingerprint.startsWith('changed ') === true) return 'kept';
  const created: StoredObject[] = [];
  for (const handle of known?.handles ?? []) {
    const object = await tx.objects.get(handle);
    if (object !== undefined && object.destroyedAt === null) created.push(object);
  }
  if (created.length > 0 && !(await undo(created))) return 'kept';
  await tx.tdeRequests.put({ id, fingerprint: withdrawn, handles: [], at: now });
  return created.length > 0 ? 'undone' : 'not-carried-out';
};
