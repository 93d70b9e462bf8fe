// One at a time: work waits until other work of its kind has finished. A failure does not affect
// the work that waits.

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
