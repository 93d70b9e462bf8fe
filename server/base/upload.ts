// Which requests bring a file: they may take as long as they need, as long as their bytes come. All
// others have a time in total. Behind a symbol, because the front knows it and the listener counts;
// of HTTP/2 on the stream.

const upload = Symbol('upload');

export interface Upload {
  readonly at: number;
  /** What the connection had received then. */
  readonly bytes: number;
}
interface Incoming {
  readonly socket: { readonly bytesRead: number };
  readonly stream?: object;
  [upload]?: Upload;
}

/** After its first seconds: a line of 128 kbit/s. */
const leastBytesPerMs = 16;

export const markUpload = (incoming: object): void => {
  const own = incoming as Incoming;
  ((own.stream ?? own) as Incoming)[upload] = { at: performance.now(), bytes: own.socket.bytesRead };
};

/**
 * Whether a request, or its stream, has used up its time, which is `graceMs` and, of a file, what
 * its bytes take. `sinceMs`: when it began.
 */
export const isOverdue = (request: object, bytesRead: number, sinceMs: number, graceMs: number): boolean => {
  const now = performance.now();
  if (now - sinceMs <= graceMs) return false;
  const own = (request as Incoming)[upload];
  return own === undefined || bytesRead - own.bytes < (now - own.at - graceMs) * leastBytesPerMs;
};
