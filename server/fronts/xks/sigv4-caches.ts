// What the verification of signatures remembers, so that a request costs one HMAC and a few
// comparisons. No answer changes by it: everything here is what sigv4-reading.ts and the core would
// say again.
//
// Signing keys are kept by credential, day and region: deriving one costs four HMACs, using one
// costs one. A key enters the cache only after a signature under it has verified, so that a
// stranger who invents regions neither fills the cache nor pushes the real ones out. So it is with
// what an Authorization header says before its signature.

import type { KeyRef, XksCrypto } from '../../ports/xks-crypto.ts';
import {
  type AuthorizationPrefix,
  type HeaderPositions,
  parseDate,
  readPositions,
  signatureLength,
} from './sigv4-reading.ts';

/** Raw headers, names and values, of header positions that are remembered. */
const mostKeptHeaders = 200;
const maxPrefixes = 256;

export interface SigningKeys {
  /** Runs `use` with the signing key; keeps the key when `use` answered true. */
  with(secret: KeyRef, date: string, region: string, service: string, use: (key: KeyRef) => boolean): boolean;
}

export const createSigningKeys = (core: XksCrypto, capacity = 256): SigningKeys => {
  // A Map keeps the order of insertion: its first entry is the oldest.
  const cached = new Map<string, KeyRef>();

  /** The one that was used last, found without putting its name together. */
  let last: { secret: KeyRef; date: string; region: string; service: string; key: KeyRef } | undefined;

  const keep = (name: string, key: KeyRef): void => {
    cached.set(name, key);
    if (cached.size <= capacity) return;
    const [oldest] = cached;
    if (oldest === undefined) return;
    cached.delete(oldest[0]);
    if (last?.key === oldest[1]) last = undefined;
    core.release(oldest[1]);
  };

  return {
    with: (secret, date, region, service, use) => {
      if (
        last !== undefined &&
        last.secret === secret &&
        last.date === date &&
        last.region === region &&
        last.service === service
      )
        return use(last.key);
      // A KeyRef is never given twice: a replaced credential has another name here.
      const name = `${secret}/${date}/${region}/${service}`;
      const known = cached.get(name);
      if (known !== undefined) {
        last = { secret, date, region, service, key: known };
        return use(known);
      }
      const derived = core.sigv4SigningKey(secret, date, region, service);
      if (use(derived)) {
        keep(name, derived);
        return true;
      }
      core.release(derived);
      return false;
    },
  };
};

/** parseDate, remembering the last answer: requests of one second have one date. */
export const createDateReader = (): ((text: string) => number | null) => {
  let lastText = '';
  let lastTime: number | null = null;
  return (text) => {
    if (text !== lastText) [lastText, lastTime] = [text, parseDate(text)];
    return lastTime;
  };
};

const hasSameNames = ({ names }: HeaderPositions, rawHeaders: readonly string[]): boolean => {
  for (let at = 0; at < names.length; at += 1) if (names[at] !== rawHeaders[2 * at]) return false;
  return true;
};

/**
 * readPositions, remembering the last result for each length: comparing names is much cheaper than
 * sorting them into a map.
 */
export const createPositionsReader = (): ((rawHeaders: readonly string[]) => HeaderPositions) => {
  const byLength = new Map<number, HeaderPositions>();
  return (rawHeaders) => {
    const { length } = rawHeaders;
    const known = byLength.get(length);
    if (known !== undefined && hasSameNames(known, rawHeaders)) return known;
    const read = readPositions(rawHeaders);
    if (length <= mostKeptHeaders) byLength.set(length, read);
    return read;
  };
};

/** Beginnings of Authorization headers under which a signature has verified. */
export interface Prefixes {
  find(authorization: string): AuthorizationPrefix | undefined;
  /** After a signature under it has verified. */
  keep(prefix: AuthorizationPrefix): void;
}

export const createPrefixes = (): Prefixes => {
  // A Map's first entry is its oldest.
  const prefixes = new Map<string, AuthorizationPrefix>();
  let last: AuthorizationPrefix | undefined;
  return {
    find: (authorization) => {
      const length = authorization.length - signatureLength;
      if (last !== undefined && last.text.length === length && authorization.startsWith(last.text)) return last;
      const found = prefixes.get(authorization.slice(0, -signatureLength));
      if (found !== undefined) last = found;
      return found;
    },
    keep: (prefix) => {
      last = prefix;
      prefixes.set(prefix.text, prefix);
      const [oldest] = prefixes.keys();
      if (prefixes.size > maxPrefixes && oldest !== undefined) prefixes.delete(oldest);
    },
  };
};
