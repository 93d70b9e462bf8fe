/** A value that is there, or that follows. */
export type Later<T> = T | Promise<T>;
/** Continues with a value, at once where it is there already. */
export const andThen = <T, R>(later: Later<T>, next: (value: T) => Later<R>): Later<R> =>
  later instanceof Promise ? later.then(next) : next(later);
