// One at a time: work that must not run beside other work of its kind waits for it. A failure does not affect the work behind it.

export interface Exclusion {
  run<T>(work: () => Promise<T>): Promise<T>;
}

export const createExclusion = (): Exclusion => {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run: (work) => {
      const mine = last.then(work, work);
      last = mine.catch(() => undefined);
      return mine;
    },
  };
};
