// What a service has opened and started, in that order. It is stopped in reverse order.

export interface StopFailure {
  /** The name of the part that failed, as given to `opened` or `start`. */
  readonly name: string;
  readonly error: unknown;
}

export interface Lifecycle {
  /** Something is open: `close` gives it back at the end. */
  opened(name: string, close: () => unknown): void;
  /** Starts a part now, and stops it at the end. */
  start(name: string, part: { start?(): unknown; stop(): unknown }): Promise<void>;
  /**
   * Stops everything, also after a failure. Answers the failures in the order in which they
   * happened.
   */
  stop(): Promise<readonly StopFailure[]>;
}

export const createLifecycle = (): Lifecycle => {
  const parts: { readonly name: string; readonly stop: () => unknown }[] = [];
  const opened = (name: string, stop: () => unknown): void => {
    parts.push({ name, stop });
  };
  return {
    opened,
    start: async (name, part) => {
      await part.start?.();
      opened(name, () => part.stop());
    },
    stop: async () => {
      const failures: StopFailure[] = [];
      for (const { name, stop } of parts.splice(0).reverse())
        try {
          await stop();
        } catch (error) {
          failures.push({ name, error });
        }
      return failures;
    },
  };
};
