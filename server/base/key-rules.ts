// Rules of cryptography that the agent keeps for keys of the session, and the service for keys of
// the token. They are here once.

/**
 * Bytes of a GCM tag. Shorter ones forge too easily (SP 800-38D, section 5.2.1.2, allows them for
 * special uses only).
 */
export const gcmTag = { least: 12, most: 16 } as const;

/** What decides if the holder of a key may read its value. */
interface Custody {
  readonly sensitive: boolean;
  readonly extractable: boolean;
}

/** 128 bits: none of them is found by trying. */
const leastHiddenBytes = 16;

/**
 * Whether a key whose value cannot be read may have so many bytes, where its maker chooses the
 * length (derivation, and what AES-CBC unwraps). The first bytes are the same for each length: with
 * keys of 1, 2, 3 … bytes its value would be found byte by byte.
 */
export const mayHaveLength = (bytes: number, { sensitive, extractable }: Custody): boolean =>
  bytes >= leastHiddenBytes || (!sensitive && extractable);
