// Lets a few pieces of work run at a time and a few more wait, and refuses the rest. For work that keeps a CPU busy for long. Each user has a
// queue of their own, and the queues are served in turn: however much one user asks for, another waits for one piece of work at most.

/** Thrown by `pass` when too much work of this user waits already. */
export class TurnstileFull extends Error {
  override readonly name = 'TurnstileFull';
}

export interface Turnstile {
  /** Runs `work` when it is its turn. `user`: whose it is, where there are several. */
  pass<T>(work: () => Promise<T>, user?: string): Promise<T>;
}

export interface TurnstileLimits {
  /** Of all users together. */
  readonly running: number;
  /** Of one user; as many as of all when absent. */
  readonly runningEach?: number;
  /** Of one user. */
  readonly waiting: number;
}

interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

export const createTurnstile = ({ running: most, runningEach = most, waiting }: TurnstileLimits): Turnstile => {
  /** By user: whose last turn is longest ago comes first. */
  const lines = new Map<string, Line>();
  let running = 0;

  const toTheBack = (user: string, line: Line): void => {
    lines.delete(user);
    if (line.running > 0 || line.waiting.length > 0) lines.set(user, line);
  };
  const enter = (user: string, line: Line): void => {
    line.running += 1;
    running += 1;
    toTheBack(user, line);
  };
  const leave = (user: string, line: Line): void => {
    line.running -= 1;
    running -= 1;
    toTheBack(user, line);
    // One place is free, so one of those that wait gets in at most.
    for (const [other, next] of lines) {
      const start = next.running < runningEach ? next.waiting.shift() : undefined;
      if (start === undefined) continue;
      enter(other, next);
      start();
      return;
    }
  };

  return {
    pass: async (work, user = '') => {
      const line = lines.get(user) ?? { running: 0, waiting: [] };
      if (running >= most || line.running >= runningEach) {
        if (line.waiting.length >= waiting) throw new TurnstileFull('too much of this work waits already');
        lines.set(user, line);
        await new Promise<void>((resolve) => line.waiting.push(resolve));
      } else {
        enter(user, line);
      }
      try {
        return await work();
      } finally {
        leave(user, line);
      }
    },
  };
};
