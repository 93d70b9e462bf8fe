// What the store and the core did for a request, and when: recorded only while traces are sent,
// around the very objects that the operations use otherwise. A step says the name of what was
// called, and nothing of what it was given or answered.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { Store } from '../../ports/store.ts';
import type { RequestStep } from '../../ports/telemetry.ts';

export interface Steps {
  /** Steps of this work, and of what it awaits, are added to the list. */
  run(steps: RequestStep[], work: () => void): void;
  store(store: Store): Store;
  core(core: CryptoCore): CryptoCore;
}

/** A request that reads thousands of rows one by one says nothing new with more of them. */
const mostSteps = 64;
/** Too short and too frequent to be of interest. */
const unmeasured: ReadonlySet<string> = new Set([
  ...['libcryptoVersion', 'memoryStatus', 'wipe', 'timingSafeEqual', 'release', 'describe'],
]);

type Function = (...input: readonly unknown[]) => unknown;

export const createSteps = (): Steps => {
  const current = new AsyncLocalStorage<RequestStep[]>();
  const epochMs = (): number => performance.timeOrigin + performance.now();

  const measured =
    (name: string, call: Function): Function =>
    (...input) => {
      const steps = current.getStore();
      if (steps === undefined || steps.length >= mostSteps) return call(...input);
      const from = epochMs();
      const add = (): void => {
        if (steps.length < mostSteps) steps.push({ name, from, to: epochMs() });
      };
      let answer: unknown;
      try {
        answer = call(...input);
      } catch (error) {
        add();
        throw error;
      }
      if (!(answer instanceof Promise)) {
        add();
        return answer;
      }
      return answer.finally(add);
    };

  /** A copy of the object with its functions measured. */
  const around = <T extends object>(name: string, target: T): T =>
    Object.freeze(
      Object.fromEntries(
        Object.entries(target).map(([member, value]) => [
          member,
          typeof value === 'function' && !unmeasured.has(member)
            ? measured(`${name}.${member}`, value as Function)
            : value,
        ]),
      ),
    ) as T;

  return {
    run: (steps, work) => current.run(steps, work),
    core: (core) => around('core', core),
    store: (store) => ({
      ...store,
      // A list of repositories, each an object of functions.
      read: Object.fromEntries(
        Object.entries(store.read).map(([name, repository]) => [name, around(`store.${name}`, repository as object)]),
      ) as unknown as Store['read'],
      write: measured('store.write', store.write as unknown as Function) as Store['write'],
      snapshot: measured('store.snapshot', store.snapshot as unknown as Function) as Store['snapshot'],
    }),
  };
};
