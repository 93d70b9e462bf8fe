// Requests whose changes must be shown by every node before they are answered: what such a request
// has committed, or has found done, is waited for after its work. A change that this node cannot
// ask about is reported as made and not confirmed.

import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '../../base/service-error.ts';
import type { ChangeMark } from '../../domain/change-protocol.ts';
import type { Changes } from '../../domain/changes.ts';
import type { Fleet, Unconfirmed } from '../../ports/fleet.ts';
import type { Store } from '../../ports/store.ts';
import type { Directory } from '../../ports/working-memory.ts';
import { type Acknowledgement, confirmed } from './acknowledgement.ts';
import type { ShownChanges } from './shown-changes.ts';

export interface ObservedRequests extends Pick<Fleet, 'observe' | 'confirm'> {
  /** Shows what was committed here. Outside of `observe` it waits for the other nodes, too. */
  renew(directory: Directory, changed: Changes): Promise<void>;
}

/** What a request under `observe` has to wait for. */
interface Watch {
  epoch: number | undefined;
  /** This node could not ask for it. */
  unheard: boolean;
  /** What the request has found done. */
  own: ChangeMark | undefined;
  /** Its change may be lost. */
  doubt: ServiceError | undefined;
}

const isDoubt = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && error.reason === 'unconfirmed';

/** The change is made; this node cannot ask who shows it. */
const unconfirmed = (cause: unknown): ServiceError => {
  if (isDoubt(cause)) return cause;
  return new ServiceError(
    'unavailable',
    'the change was made but not confirmed: this node cannot reach the other nodes, which may use the old state',
    {
      hint: 'repeat the request at another node, with the same Idempotency-Key if it had one; dke node list shows the nodes',
      reason: 'unconfirmed',
      cause,
    },
  );
};

export const createObservedRequests = (
  store: Pick<Store, 'mark'>,
  changes: Pick<ShownChanges, 'reach' | 'isLost'>,
  acknowledgement: Pick<Acknowledgement, 'wait'>,
): ObservedRequests => {
  const watching = new AsyncLocalStorage<Watch>();
  const reach = (own?: ChangeMark): Promise<number> =>
    changes.reach(own).catch((error: unknown) => {
      throw unconfirmed(error);
    });
  const askOthers = (epoch: number): Promise<Unconfirmed> =>
    acknowledgement.wait(epoch).catch((error: unknown) => {
      throw unconfirmed(error);
    });

  return {
    observe: async (work) => {
      const watch: Watch = { epoch: undefined, unheard: false, own: undefined, doubt: undefined };
      const outcome = await watching.run(watch, work).then(
        (value) => ({ value }),
        (refusal: unknown) => {
          // The key was destroyed before, perhaps a moment ago by another node: the refusal is
          // confirmed like a change.
          if (!(refusal instanceof ServiceError) || refusal.code !== 'key-destroyed') throw refusal;
          watch.unheard = true;
          watch.own = store.mark();
          return { refusal };
        },
      );
      if (watch.doubt !== undefined) throw watch.doubt;
      if (watch.unheard) watch.epoch = await reach(watch.own);
      return { ...outcome, ...(watch.epoch === undefined ? confirmed : await askOthers(watch.epoch)) };
    },
    confirm: () => {
      const watch = watching.getStore();
      if (watch === undefined) return;
      watch.unheard = true;
      watch.own = store.mark();
    },
    renew: async (directory, changed) => {
      directory.forget(changed);
      const watch = watching.getStore();
      if (watch === undefined) {
        await askOthers(await reach());
        return;
      }
      try {
        // A change that changed nothing waits, too: the one before it may not be shown yet.
        watch.epoch = await changes.reach();
      } catch (error) {
        if (changes.isLost()) throw error;
        // The change is committed: this node shows it as far as the store can be read, keeps its
        // answer, and tells the caller at the end.
        if (isDoubt(error)) watch.doubt = error;
        watch.unheard = true;
        await directory.renew(changed).catch(() => undefined);
      }
    },
  };
};
