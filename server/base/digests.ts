// The digests of FIPS 180-4 and FIPS 202 by the core's names, and how many bytes each gives.

export const digestLengths = {
  sha1: 20,
  sha224: 28,
  sha256: 32,
  sha384: 48,
  sha512: 64,
  'sha512-224': 28,
  'sha512-256': 32,
  'sha3-224': 28,
  'sha3-256': 32,
  'sha3-384': 48,
  'sha3-512': 64,
} as const;

export type DigestName = keyof typeof digestLengths;
export const digestNames = Object.keys(digestLengths) as DigestName[];
