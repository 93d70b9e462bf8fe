// What a person sees at a terminal when a command takes more than two seconds: what runs, and for
// how long. Programs and files get nothing of it.

const afterMs = 2_000;
const everyMs = 1_000;

/** Commands that run until they are stopped. */
const endless = new Set(['dke server', 'dke agent', 'dke cloud']);

let timer: NodeJS.Timeout | undefined;
let shown = false;
let paused = false;

export const lineOf = (name: string, ms: number): string => {
  const seconds = Math.floor(ms / 1_000);
  const time = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${name} … ${time}`;
};

/** Before anything else is written to the terminal. */
export const clearProgress = (): void => {
  if (!shown) return;
  process.stderr.write('\r\u001b[K');
  shown = false;
};

export const startProgress = (name: string): void => {
  if (!process.stderr.isTTY || endless.has(name)) return;
  const begin = performance.now();
  timer = setInterval(() => {
    const ms = performance.now() - begin;
    if (ms < afterMs || paused) return;
    process.stderr.write(`\r${lineOf(name, ms)}\u001b[K`);
    shown = true;
  }, everyMs);
  timer.unref();
};

export const stopProgress = (): void => {
  clearInterval(timer);
  clearProgress();
};

/** While a person answers a question, or an answer is written to the terminal as it comes. */
export const withoutProgress = async <T>(work: () => Promise<T>): Promise<T> => {
  const before = paused;
  paused = true;
  clearProgress();
  try {
    return await work();
  } finally {
    paused = before;
  }
};
