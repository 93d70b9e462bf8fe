// Sends requests at a fixed rate, independent of the answers. The latency counts from the scheduled
// time of a request, so that a server that stalls still gets the requests of that time.

export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
  /** Answers are awaited for so long after the last request. */
  readonly graceSeconds: number;
  /** Requests under way beyond which the rest is counted as not sent. */
  readonly mostUnderWay: number;
}

export interface PaceReport {
  readonly sent: number;
  readonly notSent: number;
  readonly unanswered: number;
}

const tickMs = 2;

/**
 * `send` gets the scheduled time of the request (performance.now()) and resolves at its end,
 * successful or not; it never rejects.
 */
export const keepPace = async (
  { perSecond, seconds, graceSeconds, mostUnderWay }: Pace,
  send: (dueAt: number) => Promise<void>,
): Promise<PaceReport> => {
  const startedAt = performance.now();
  const whole = Math.floor(perSecond * seconds);
  let due = 0;
  let sent = 0;
  let underWay = 0;
  let settled: () => void = () => undefined;
  const over = (): void => {
    underWay -= 1;
    if (underWay === 0) settled();
  };
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const now = Math.min(whole, Math.floor(((performance.now() - startedAt) / 1000) * perSecond));
      for (; due < now; due += 1) {
        if (underWay >= mostUnderWay) continue;
        sent += 1;
        underWay += 1;
        void send(startedAt + (due / perSecond) * 1000).then(over);
      }
      if (due < whole) return;
      clearInterval(timer);
      resolve();
    }, tickMs);
  });
  await new Promise<void>((resolve) => {
    settled = resolve;
    if (underWay === 0) resolve();
    else setTimeout(resolve, graceSeconds * 1000).unref();
  });
  return { sent, notSent: whole - sent, unanswered: underWay };
};
