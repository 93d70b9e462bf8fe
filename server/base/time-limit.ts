/**
 * Whether `work` ends in time. It continues in any case; an error that it throws later is ignored.
 * `ms`: what is left of a deadline, also when that has passed: then it is whether `work` has ended.
 */
export const within = async (ms: number, work: Promise<unknown>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms));
  });
  work.catch(() => undefined);
  try {
    return await Promise.race([work.then(() => true as const), late]);
  } finally {
    clearTimeout(timer);
  }
};
