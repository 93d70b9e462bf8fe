// Which initial values each key has encrypted with, so that none is used twice: under GCM a repeat
// tells the difference of two messages, and lets an attacker who saw both forge a third (SP
// 800-38D, section 8). What counts is the key itself, because two objects can hold one key. An IV
// is used up when encryption with it begins, whatever happens to that.
//
// Remembered in the addon, as long as the application lives, in a share of its own: no other
// application uses it up.
import { core, type KeyRef } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import type { ReadonlyAttributes } from './attribute-blob.ts';

/** What a key is known by: its own bytes would tell it, and these do not. */
export type KeyIdentity = Uint8Array;

const probe = new Uint8Array(16);
core.random(probe);

/**
 * An AES key in the addon: its encryption of a secret block. The same for each object that holds
 * the key.
 */
export const identityHere = (key: KeyRef): KeyIdentity => {
  const identity = new Uint8Array(16);
  core.cipher(key, 'encrypt', { algorithm: 'aes-ecb' }, probe, identity);
  return identity;
};

/**
 * A key that the service has: its length and check value, three bytes that it has in common with
 * few others.
 */
export const identityThere = (attributes: ReadonlyAttributes): KeyIdentity => {
  const check = attributes.get(CKA.CHECK_VALUE);
  return Buffer.from([Number(attributes.get(CKA.VALUE_LEN)), ...(check instanceof Uint8Array ? check : [])]);
};

/** What a key goes by, in one place or in both. */
export type KeyIdentities = readonly [KeyIdentity, KeyIdentity?];

/** The IVs that the keys of one application have used. */
export class UsedIvs {
  readonly owner = core.newIvOwner();

  /** Whether the key has used this IV, under any of the identities that it goes by. */
  has([identity, other]: KeyIdentities, iv: Uint8Array): boolean {
    return core.ivUsed(this.owner, iv, identity, other);
  }

  /** The application has ended, and its keys with it. */
  end(): void {
    core.endIvOwner(this.owner);
  }

  /** Marks an IV as used by a key. False when it was: nothing may be encrypted with it then. */
  claim([identity, other]: KeyIdentities, iv: Uint8Array): boolean {
    return core.claimIv(this.owner, iv, identity, other);
  }
}
