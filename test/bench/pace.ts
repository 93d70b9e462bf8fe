// Sends requests at a fixed rate, whatever the answers do: each has its time, and its latency counts from there, so that a server
// that stalls is not spared the requests that would have come in the meantime.

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

/** `send` is told when the request was due (performance.now()) and resolves when it is over, well or not; it never rejects. */
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
