// A change on a condition (If-Match, a caller who still may): the condition is checked in the unit
// of work that makes the change, the first one of the request. Units of work run one at a time,
// over all nodes, so nothing changes between the check and the change.
//
// Later units of a request are under no condition. They complete what the first one has begun: a
// snapshot, an import, a clean-up after a failure would stay half made if they were refused. And
// the first one may itself have ended what the condition asks for, as a sign-out does.

import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '../../base/service-error.ts';
import type { Repositories, Store } from '../../ports/store.ts';

export interface PreconditionOperations {
  /**
   * Runs `work`. The first unit of work that it makes begins with `check`, in which whatever is
   * read is what that unit of work sees; when it throws, nothing is changed. Without any unit of
   * work nothing is checked. A nested condition adds to the outer one.
   */
  under<T>(check: () => Promise<void>, work: () => Promise<T>): Promise<T>;
}

interface Condition {
  readonly check: () => Promise<void>;
  /**
   * A unit of work that began with it is committed, or the request has ended: what it has set going
   * is under no condition.
   */
  over: boolean;
}

/**
 * `store` is what the operations are to read and write through, for a request. What the service
 * writes on its own in the meantime (uses, alarms) is to go past it: it would pass for the change,
 * which is then not checked.
 */
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
      // A write within a check would wait for the unit of work that waits for the check.
      if (checking.getStore() !== undefined) throw new ServiceError('internal', 'a condition changes nothing');
      const condition = conditions.getStore();
      if (condition === undefined || condition.over) return inner.write(work, options);
      const value = await inner.write(async (tx) => {
        if (!condition.over) await checking.run(tx, condition.check);
        return work(tx);
      }, options);
      condition.over = true;
      return value;
    },
  };
  const under: PreconditionOperations['under'] = async (check, work) => {
    const outer = conditions.getStore();
    const all = async (): Promise<void> => {
      if (outer?.over === false) await outer.check();
      await check();
    };
    const condition: Condition = { check: all, over: false };
    try {
      return await conditions.run(condition, work);
    } finally {
      condition.over = true;
    }
  };
  return { store, operations: { under } };
};
