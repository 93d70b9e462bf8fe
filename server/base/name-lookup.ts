// Names to addresses by the system's resolver, with an end: a DNS server that does not answer keeps
// getaddrinfo for many seconds, and what waits for the connection would call that a slow service.
// Look-ups of one name at a time share one call, because each takes one of few threads.

import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** The code of an error: DNS did not answer in time. */
export const dnsTimeout = 'DNS_TIMEOUT';

const running = new Map<string, Promise<readonly LookupAddress[]>>();

const resolve = (host: string, options: LookupOptions): Promise<readonly LookupAddress[]> => {
  const name = JSON.stringify([host, options.family ?? 0, options.hints ?? 0, options.order ?? options.verbatim]);
  let pending = running.get(name);
  if (pending === undefined) {
    pending = new Promise<readonly LookupAddress[]>((done, fail) => {
      lookup(host, { ...options, all: true }, (error, found) => (error === null ? done(found) : fail(error)));
    }).finally(() => running.delete(name));
    running.set(name, pending);
  }
  return pending;
};

/** Throws what the resolver does, and an error with the code `dnsTimeout` after `ms`. */
export const resolveWithin = async (
  ms: number,
  host: string,
  options: LookupOptions = {},
): Promise<readonly LookupAddress[]> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(
      () => fail(Object.assign(new Error(`DNS did not answer within ${ms} ms`), { code: dnsTimeout })),
      ms,
    );
  });
  try {
    return await Promise.race([resolve(host, options), late]);
  } finally {
    clearTimeout(timer);
  }
};

/** For the `lookup` option of a connection. */
export const lookupWithin =
  (ms: number): LookupFunction =>
  (host, options, done) => {
    resolveWithin(ms, host, options).then(
      (found) => {
        const [first] = found;
        if (options.all === true) done(null, [...found]);
        else if (first !== undefined) done(null, first.address, first.family);
        else done(Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' }), '');
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    );
  };
