// A change on a condition (If-Match): the condition is looked at in the unit of work that makes the change, the first one of the request.
// Units of work take turns, on all nodes, so nobody changes anything between the look and the change.

import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '../base/errors.ts';
import type { Repositories, Store } from '../ports/store.ts';

export interface PreconditionOperations {
  /**
   * Runs `work`. The first unit of work that it makes begins with `check`, in which whatever is read is what that unit of work sees; when
   * it throws, nothing is changed. Without any unit of work nothing is checked.
   */
  under<T>(check: () => Promise<void>, work: () => Promise<T>): Promise<T>;
}

interface Condition {
  readonly check: () => Promise<void>;
  /** A unit of work that began with it is committed. */
  held: boolean;
}

/** `store` is what the operations are to read and write through. */
export const createPreconditions = (
  inner: Store,
): { readonly store: Store; readonly operations: PreconditionOperations } => {
  const conditions = new AsyncLocalStorage<Condition>();
  /** What a check reads. */
  const checking = new AsyncLocalStorage<Repositories>();
  const store: Store = {
    ...inner,
    get read() {
      return checking.getStore() ?? inner.read;
    },
    write: async <T>(work: (tx: Repositories) => Promise<T>, options?: { readonly durable?: boolean }): Promise<T> => {
      // It would wait for the unit of work that waits for it.
      if (checking.getStore() !== undefined) throw new ServiceError('internal', 'a condition changes nothing');
      const condition = conditions.getStore();
      if (condition === undefined || condition.held) return inner.write(work, options);
      const value = await inner.write(async (tx) => {
        if (!condition.held) await checking.run(tx, condition.check);
        return work(tx);
      }, options);
      condition.held = true;
      return value;
    },
  };
  return { store, operations: { under: (check, work) => conditions.run({ check, held: false }, work) } };
};
