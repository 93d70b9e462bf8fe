// That no IV encrypts two messages under one key of the token. What remains of it (docs/pkcs11.md):
// each node remembers on its own, until it ends. The keys of each application have a share of that
// memory, which uses of other applications' keys leave alone.

import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/service-error.ts';
import type { AeadParameters, CipherParameters, CryptoCore } from '../../ports/crypto-core.ts';
import type { Directory } from '../../ports/working-memory.ts';
import type { PartOfMessage } from './tde-operations.ts';

const nothing = new Uint8Array(0);
const digestOf = (head: string, aad: Uint8Array, input: Uint8Array): Buffer =>
  createHash('sha256').update(head).update(aad).update(input).digest();

/** A key, and the application that owns it: others of its group use it, too. */
interface Owned {
  readonly id: string;
  readonly applicationId: string;
}

export interface IvClaims {
  /** Throws 'conflict' if the key has encrypted another message with this IV. */
  claimIv(object: Owned, parameters: CipherParameters, input: Uint8Array): void;
  /** `at`: bytes of data before this part. */
  claimPart(object: Owned, parameters: AeadParameters, part: PartOfMessage, at: number): void;
}

/** The memory of one application's keys: of IVs, and of the messages that they encrypted. */
interface Share {
  readonly ivs: number;
  readonly messages: number;
}

export const createIvClaims = (
  core: Pick<CryptoCore, 'newIvOwner' | 'endIvOwner' | 'claimIv' | 'ivUsed'>,
  { applicationById }: Pick<Directory, 'applicationById'>,
): IvClaims => {
  const shares = new Map<string, Share>();
  const shareOf = (applicationId: string): Share => {
    const known = shares.get(applicationId);
    if (known !== undefined) return known;
    // A removed application gives its share back when the next one needs one.
    for (const [id, { ivs, messages }] of shares)
      if (applicationById(id) === undefined) {
        for (const owner of [ivs, messages]) core.endIvOwner(owner);
        shares.delete(id);
      }
    const share = { ivs: core.newIvOwner(), messages: core.newIvOwner() };
    shares.set(applicationId, share);
    return share;
  };
  // One IV is for one message: a second one would tell the difference of the two and let others
  // forge (SP 800-38D, section 8). The agent refuses every repeat, but it ends, and other hosts
  // have the key as well. The same message again, from a library whose agent ended before the
  // answer, gives the same bytes and tells nothing. Remembered in the addon, two entries for each
  // message.
  const claim = ({ applicationId }: Owned, iv: Uint8Array, identity: string, message: Buffer): void => {
    const { ivs, messages } = shareOf(applicationId);
    if (core.claimIv(ivs, iv, Buffer.from(identity))) core.claimIv(messages, iv, message);
    else if (!core.ivUsed(messages, iv, message))
      throw new ServiceError('conflict', 'the key has encrypted another message with this IV', {
        hint: 'use a new IV for every message',
      });
  };
  const claimIv = (object: Owned, parameters: CipherParameters, input: Uint8Array): void => {
    if (parameters.algorithm !== 'aes-gcm' && parameters.algorithm !== 'aes-ccm') return;
    const { iv, aad = nothing, tagLength } = parameters;
    const head = `${object.id}\n${parameters.algorithm} ${tagLength} ${aad.length}\n`;
    claim(object, iv, object.id, digestOf(head, aad, input));
  };
  // The parts of a message are claimed one by one. Behind a first part that is claimed there can be
  // only one second one, and so on: whatever states the caller brings back, every byte of the
  // message is encrypted in one way.
  const claimPart = (
    object: Owned,
    parameters: AeadParameters,
    { state, last, input }: PartOfMessage,
    at: number,
  ): void => {
    const { id } = object;
    const { iv, aad = nothing, tagLength } = parameters;
    const place = state.length === 0 ? 'first' : `at ${at}`;
    const head = `${id}\n${parameters.algorithm} ${tagLength} ${aad.length} part ${last} ${place}\n`;
    claim(object, iv, state.length === 0 ? id : `${id} ${place}`, digestOf(head, aad, input));
  };
  return { claimIv, claimPart };
};
