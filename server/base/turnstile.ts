// Lets a few pieces of work run at a time and a few more wait; refuses the rest. For work that keeps a CPU busy for long, so
// that whoever asks for much of it does not take the machine from everybody else.

/** Thrown by `pass` when too many wait already. */
export class TurnstileFull extends Error {
  override readonly name = 'TurnstileFull';
}

export interface Turnstile {
  /** Runs `work` when it is its turn. */
  pass<T>(work: () => Promise<T>): Promise<T>;
}

export const createTurnstile = (limits: { readonly running: number; readonly waiting: number }): Turnstile => {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    pass: async (work) => {
      if (running >= limits.running) {
        if (waiting.length >= limits.waiting) throw new TurnstileFull('too much of this work waits already');
        // Whoever leaves hands its place on: the count stays as it is.
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else {
        running += 1;
      }
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
};
