// What both directions of the codec share: version bytes, dialects, and the numbers that
// PROTOCOL.md fixes.
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';

/** The version byte of our own library. p11-kit's peers send 0 (to 0.24), 1 (0.25) or 2 (0.26). */
export const ownVersion = 0xd1;
/** The version answered to p11-kit's peers: the one that all of them speak. */
export const foreignVersion = 0;

/**
 * How the peer writes mechanisms and asks for attributes; decided by the version byte it offered.
 */
export type Dialect = 'own' | 'p11-kit-0.24' | 'p11-kit-0.26';

/** What to answer to a peer's version byte, and which dialect it speaks from then on. */
export const negotiate = (version: number): { readonly answer: number; readonly dialect: Dialect } => {
  if (version === ownVersion) return { answer: ownVersion, dialect: 'own' };
  return { answer: foreignVersion, dialect: version >= 2 ? 'p11-kit-0.26' : 'p11-kit-0.24' };
};

export const noBytes = Buffer.alloc(0);
export const twoTo32 = 0x1_0000_0000;
export const allOnes = 0xffff_ffff;

export const malformed = (what: string): CryptokiError =>
  new CryptokiError(CKR.DEVICE_ERROR, `malformed message: ${what}`);
export const misanswered = (what: string): CryptokiError => new CryptokiError(CKR.GENERAL_ERROR, `bad answer: ${what}`);
