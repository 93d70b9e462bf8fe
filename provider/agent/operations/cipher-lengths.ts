// Lengths of what a cipher takes and gives (PKCS#11 2.40, section 5.2), and messages whose bytes
// come in parts because one message of the wire does not carry them.
import type { ChainedParameters, CipherParameters, Direction } from '../../../addon/core.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError, type OutBuffer } from '../../schema/types.ts';
import { dataTooLong } from '../return-values.ts';
import type { CipherRow } from './mechanism-row.ts';

export const wrongLength = (direction: Direction): CryptokiError =>
  direction === 'encrypt'
    ? new CryptokiError(CKR.DATA_LEN_RANGE, 'the mechanism does not take data of this length')
    : new CryptokiError(CKR.ENCRYPTED_DATA_LEN_RANGE, 'the mechanism does not produce encrypted data of this length');

/**
 * Whether the modes of these parameters chain or count block by block, and so travel as they come
 * (chain.ts).
 */
export const isChained = (parameters: CipherParameters): parameters is ChainedParameters =>
  !('tagLength' in parameters);

/** The number that a counter block is, the first byte highest. */
export const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

/**
 * Whether the counter of AES-CTR, which may be fewer than 128 bits wide, runs over in a message of
 * so many bytes.
 */
export const counterRunsOver = (parameters: CipherParameters, length: number): boolean => {
  if (parameters.algorithm !== 'aes-ctr') return false;
  const { iv, counterBits = 128 } = parameters;
  if (counterBits >= 128) return false;
  const blocks = BigInt(Math.ceil(length / 16));
  return BigInt.asUintN(counterBits, numberOf(iv)) + blocks > 1n << BigInt(counterBits);
};

/**
 * Length of a whole result: exact but for CBC_PAD decryption, where it is the most that can come.
 */
export const resultLength = (direction: Direction, parameters: CipherParameters, length: number): number => {
  switch (parameters.algorithm) {
    case 'aes-cbc-pad':
      return direction === 'encrypt' ? length - (length % 16) + 16 : length;
    case 'aes-gcm':
    case 'aes-ccm':
      return direction === 'encrypt' ? length + parameters.tagLength : length - parameters.tagLength;
    case 'aes-ecb':
    case 'aes-cbc':
    case 'aes-ctr':
      return length;
  }
};

export const checkLength = (
  row: CipherRow,
  direction: Direction,
  parameters: CipherParameters,
  length: number,
): void => {
  const unit = direction === 'encrypt' ? row.encryptUnit : row.decryptUnit;
  if (length % unit !== 0 || counterRunsOver(parameters, length)) throw wrongLength(direction);
  if (direction === 'decrypt') {
    if (parameters.algorithm === 'aes-cbc-pad' && length === 0) throw wrongLength(direction);
    if ('tagLength' in parameters && length < parameters.tagLength) throw wrongLength(direction);
  }
  if (parameters.algorithm === 'aes-ccm') {
    const { dataLength, tagLength } = parameters;
    if (length !== dataLength + (direction === 'encrypt' ? 0 : tagLength)) throw wrongLength(direction);
  }
};

/** The place for a result; the frame may end before the caller's room does. */
export const placeFor = (out: OutBuffer, length: number): Buffer => {
  if (out.space.length < length) throw dataTooLong();
  return out.space;
};

/** Whether the result may be shorter than the most it can be: its last block tells. */
export const isUnpadded = (direction: Direction, parameters: CipherParameters): boolean =>
  direction === 'decrypt' && parameters.algorithm === 'aes-cbc-pad';

/**
 * A message in one piece whose bytes come in parts, because a message of the wire does not carry
 * them.
 */
export interface Announced {
  /** Bytes of all parts. */
  readonly length: number;
  /** Bytes that have come. */
  taken: number;
  /**
   * Whether parts are answered with what happens to them. Otherwise nothing is given out yet: this
   * time it is seen whether the tag is right, or how long the result is, and then the parts come
   * again.
   */
  readonly given: boolean;
}

/**
 * Checks what is announced against the caller's room. Null: there is none for what it comes to.
 * Nothing of an authenticated message is given out before its tag is checked, and nothing of a
 * result that may not fit.
 */
export const announced = (
  row: CipherRow,
  direction: Direction,
  parameters: CipherParameters,
  length: number,
  { capacity }: OutBuffer,
): { readonly most: number; readonly message: Announced | null } => {
  checkLength(row, direction, parameters, length);
  const most = resultLength(direction, parameters, length);
  const unpadded = isUnpadded(direction, parameters);
  const least = unpadded ? most - 16 : most;
  if (capacity === null || capacity < least) return { most, message: null };
  const opens = direction === 'decrypt' && 'tagLength' in parameters;
  return { most, message: { length, taken: 0, given: !opens && capacity >= most } };
};

export const checkTaken = ({ taken, length }: Announced, more: number, direction: Direction): void => {
  if (taken + more > length) throw wrongLength(direction);
};
