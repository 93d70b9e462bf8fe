// The one door to receivers, providers and clouds. Every call through it has an end in total,
// however a peer drips, and reads so many bytes of an answer, however long that is. What a peer
// refuses is told from a peer that is away: the one is about an item, the other about the target.
//
// Who can choose it: the peer, which is named in the configuration and may be broken or in the
// hands of an attacker. How large: the callers' limits here. How often: a sink or a target has one
// call at a time; what people can cause has a limit where it begins (shares.ts). If it is lost:
// callers repeat what has no certain answer.

export interface OutsideCall {
  /** For people: the host. */
  readonly place: string;
  readonly totalMs: number;
  /** Aborted when the service stops. */
  readonly stopping?: AbortSignal | undefined;
}

/** A receiver has decided that it does not take this: it would not take it the next time either. */
export class ItemRefused extends Error {
  override readonly name = 'ItemRefused';
}

/** A peer has not answered, or not all of it, in the time of the call. */
export class LateAnswer extends Error {
  override readonly name = 'LateAnswer';
}

/** Statuses about who calls, where, or when. All other ones of 4xx are about what was sent. */
const aboutTheTarget = new Set([401, 402, 403, 404, 405, 407, 408, 410, 421, 425, 426, 429, 451]);

/** Throws where a receiver did not accept what was sent. */
export const requireAccepted = (status: number, place: string): void => {
  if (status >= 200 && status <= 299) return;
  const message = `${place} answers with status ${status}`;
  throw status >= 400 && status <= 499 && !aboutTheTarget.has(status) ? new ItemRefused(message) : new Error(message);
};

/** Rejects when all of it was not done in `totalMs`. `signal` ends what `work` has open then. */
export const callOutside = async <T>(
  { place, totalMs, stopping }: OutsideCall,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const ended = new AbortController();
  const end = (reason: Error): void => ended.abort(reason);
  const endLate = (): void => end(new LateAnswer(`${place} did not answer completely within ${totalMs / 1000} s`));
  const timer = setTimeout(endLate, totalMs);
  const stop = (): void => end(new Error('the service is stopping'));
  const { signal } = ended;
  if (stopping?.aborted === true) stop();
  stopping?.addEventListener('abort', stop);
  const late = new Promise<never>((_, reject) => {
    const give = (): void => reject(signal.reason as Error);
    if (signal.aborted) give();
    else signal.addEventListener('abort', give);
  });
  try {
    // Nothing begins after the stop.
    return await (signal.aborted ? late : Promise.race([work(signal), late]));
  } catch (error) {
    // Where the call was ended, the reason of the signal says why; the error is only a consequence.
    throw signal.aborted ? signal.reason : error;
  } finally {
    clearTimeout(timer);
    stopping?.removeEventListener('abort', stop);
    // Ends what is still open.
    end(new Error('the call is over'));
    late.catch(() => undefined);
  }
};

/** For what knows no signal: runs `end` where the call ends before `work` does. */
export const endedBy = async <T>(signal: AbortSignal, end: (reason: Error) => void, work: Promise<T>): Promise<T> => {
  const stop = (): void => end(signal.reason as Error);
  signal.addEventListener('abort', stop);
  try {
    return await work;
  } finally {
    signal.removeEventListener('abort', stop);
  }
};

/** Reads an answer of at most so many bytes. */
export const readAnswer = async (
  answer: AsyncIterable<Uint8Array>,
  most: number,
  place: string,
): Promise<Uint8Array> => {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of answer) {
    size += part.byteLength;
    if (size > most) throw new Error(`the answer of ${place} is longer than ${most} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
};

/**
 * Reads an answer whose text is not needed, to its end or until it is longer than an answer has to
 * be.
 */
export const skipAnswer = async (answer: AsyncIterable<Uint8Array>): Promise<void> => {
  let size = 0;
  for await (const part of answer) {
    size += part.byteLength;
    if (size > 65_536) return;
  }
};
