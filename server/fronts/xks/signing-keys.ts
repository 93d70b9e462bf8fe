// Signing keys by credential, day and region: deriving one costs four HMACs, using one costs one.
//
// A key enters the cache only after a signature under it has verified, so that a stranger who invents regions neither fills
// the cache nor pushes the real ones out.

import type { KeyRef, XksCrypto } from '../../ports/xks-crypto.ts';

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
