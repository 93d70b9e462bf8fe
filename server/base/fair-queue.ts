// Runs a few pieces of work at a time, queues a few more, and refuses the rest. For work that keeps
// a CPU busy for long. Each user has a queue, and the queues are served round robin: however much
// one user asks for, another waits for one piece of work at most. Where anyone can invent users,
// every second piece of work is one of the preferred users, so that strangers, however many, delay
// each of theirs by one piece at most.

/** Thrown by `run` when too much work of this user, or of all users, waits already. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
}

export interface FairQueue {
  /** Runs `work` when it is its turn. `user`: whose it is, where there are several. */
  run<T>(work: () => Promise<T>, user?: string, isPreferred?: boolean): Promise<T>;
}

export interface FairQueueLimits {
  /** How many calls run at the same time, of all users together. */
  readonly running: number;
  /** How many calls of one user run at the same time; as many as `running` when absent. */
  readonly runningEach?: number;
  /** How many calls of one user may wait; one more is refused with QueueFull. */
  readonly waiting: number;
  /**
   * How many calls may wait of all users who are not preferred; unlimited when absent. Above it the
   * longest queue gives way.
   */
  readonly waitingOfStrangers?: number;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: QueueFull) => void;
}

interface Line {
  isPreferred: boolean;
  running: number;
  readonly waiting: Waiting[];
}

export const createFairQueue = ({
  running: most,
  runningEach = most,
  waiting,
  waitingOfStrangers = Number.POSITIVE_INFINITY,
}: FairQueueLimits): FairQueue => {
  /** Lines by user: the user whose last turn is longest ago comes first. */
  const lines = new Map<string, Line>();
  let running = 0;
  let wasPreferred = false;

  const toTheBack = (user: string, line: Line): void => {
    lines.delete(user);
    if (line.running > 0 || line.waiting.length > 0) lines.set(user, line);
  };
  const enter = (user: string, line: Line): void => {
    line.running += 1;
    running += 1;
    wasPreferred = line.isPreferred;
    toTheBack(user, line);
  };
  const leave = (user: string, line: Line): void => {
    line.running -= 1;
    running -= 1;
    toTheBack(user, line);
    // One place is free, so one of those that wait gets in at most.
    const ready = [...lines].filter(([, next]) => next.running < runningEach && next.waiting.length > 0);
    const chosen = ready.find(([, { isPreferred }]) => isPreferred !== wasPreferred) ?? ready[0];
    const start = chosen?.[1].waiting.shift()?.start;
    if (chosen === undefined || start === undefined) return;
    enter(...chosen);
    start();
  };
  const full = (): QueueFull => new QueueFull('too many requests of this kind are waiting');
  /** A stranger comes: the last of the longest queue gives way, unless it would be this one. */
  const makeRoom = (line: Line): void => {
    let all = 0;
    let longest: Line | undefined;
    for (const each of lines.values())
      if (!each.isPreferred) {
        all += each.waiting.length;
        if (each.waiting.length > (longest?.waiting.length ?? 0)) longest = each;
      }
    if (all < waitingOfStrangers) return;
    if (longest === undefined || longest.waiting.length <= line.waiting.length + 1) throw full();
    longest.waiting.pop()?.refuse(full());
  };

  return {
    run: async (work, user = '', isPreferred = false) => {
      const line = lines.get(user) ?? { isPreferred, running: 0, waiting: [] };
      line.isPreferred = isPreferred;
      if (running >= most || line.running >= runningEach) {
        if (line.waiting.length >= waiting) throw full();
        if (!isPreferred) makeRoom(line);
        lines.set(user, line);
        await new Promise<void>((resolve, reject) => line.waiting.push({ start: resolve, refuse: reject }));
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
