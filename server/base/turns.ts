// Work that gives way. While something presses, this work has a few milliseconds of each turn of
// the event loop, so that an exchange of messages that takes many turns (a change, and the
// acknowledgements of other nodes) is not one queue of requests longer at each of them. At other
// times it runs at once. In order, and all of it runs: what presses is short, or takes less of each
// turn than this work does.

export type GivingWay = (work: () => void) => void;

const sliceMs = 1;

export const createTurns = (isPressed: () => boolean, now: () => number = () => performance.now()): GivingWay => {
  const waiting: (() => void)[] = [];
  let usedMs = 0;
  let isAsked = false;
  const run = (work: () => void): void => {
    const from = now();
    work();
    usedMs += now() - from;
  };
  const ask = (): void => {
    if (!isAsked) setImmediate(begin);
    isAsked = true;
  };
  const begin = (): void => {
    isAsked = false;
    usedMs = 0;
    while (waiting.length > 0 && (usedMs < sliceMs || !isPressed())) run(waiting.shift() as () => void);
    if (waiting.length > 0) ask();
  };
  return (work) => {
    if (waiting.length === 0 && !isPressed()) {
      work();
      return;
    }
    ask();
    if (waiting.length === 0 && usedMs < sliceMs) run(work);
    else waiting.push(work);
  };
};
