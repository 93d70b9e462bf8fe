// That no IV encrypts two messages under one key of the token.

import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import type { AeadParameters, CipherParameters, CryptoCore } from '../../ports/crypto-core.ts';
import type { PartOfMessage } from './interface.ts';

const nothing = new Uint8Array(0);
const digestOf = (head: string, aad: Uint8Array, input: Uint8Array): Buffer =>
  createHash('sha256').update(head).update(aad).update(input).digest();

interface Named {
  readonly id: string;
}

export interface IvClaims {
  /** Throws 'conflict' if the key has encrypted another message with this IV. */
  claimIv(object: Named, parameters: CipherParameters, input: Uint8Array): void;
  /** `at`: bytes of data before this part. */
  claimPart(object: Named, parameters: AeadParameters, part: PartOfMessage, at: number): void;
}

export const createIvClaims = (core: Pick<CryptoCore, 'newIvOwner' | 'claimIv' | 'ivUsed'>): IvClaims => {
  // One IV is for one message: a second one would tell the difference of the two and let others forge (SP 800-38D, section 8). The agent refuses
  // every repeat, but it ends, and other hosts have the key as well. The same message again, from a library whose agent ended
  // before the answer, gives the same bytes and tells nothing. Remembered in the addon, two entries for each message.
  const [ivs, messages] = [core.newIvOwner(), core.newIvOwner()];
  const claim = (iv: Uint8Array, identity: string, message: Buffer): void => {
    if (core.claimIv(ivs, iv, Buffer.from(identity))) core.claimIv(messages, iv, message);
    else if (!core.ivUsed(messages, iv, message))
      throw new ServiceError('conflict', 'the key has encrypted another message with this IV', {
        hint: 'use a new IV for every message',
      });
  };
  const claimIv = ({ id }: { readonly id: string }, parameters: CipherParameters, input: Uint8Array): void => {
    if (parameters.algorithm !== 'aes-gcm' && parameters.algorithm !== 'aes-ccm') return;
    const { iv, aad = nothing, tagLength } = parameters;
    const head = `${id}\n${parameters.algorithm} ${tagLength} ${aad.length}\n`;
    claim(iv, id, digestOf(head, aad, input));
  };
  // The parts of a message are claimed one by one. Behind a first part that is claimed there can be only one second one, and so on: whatever states the
  // caller brings back, every byte of the message is encrypted in one way.
  const claimPart = (
    { id }: { readonly id: string },
    parameters: AeadParameters,
    { state, last, input }: PartOfMessage,
    at: number,
  ): void => {
    const { iv, aad = nothing, tagLength } = parameters;
    const place = state.length === 0 ? 'first' : `at ${at}`;
    const head = `${id}\n${parameters.algorithm} ${tagLength} ${aad.length} part ${last} ${place}\n`;
    claim(iv, state.length === 0 ? id : `${id} ${place}`, digestOf(head, aad, input));
  };
  return { claimIv, claimPart };
};
