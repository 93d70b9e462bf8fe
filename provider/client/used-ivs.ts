// Which initial values each key has encrypted with, so that none is used twice: under GCM a repeat tells the difference of two
// messages, and lets whoever saw both forge a third (SP 800-38D, section 8). What counts is the key itself, because two objects
// can hold one key. An IV is used up when encryption with it begins, whatever becomes of that.
//
// Remembered as long as the application lives, and at least for the last million IVs of the agent: of each, eight bytes are kept,
// two halves of a hash with seeds of the application, in one table for all, so that no application takes more memory than there is.
import { core, type KeyRef } from '../../addon/core.ts';
import { CKA } from '../schema/attributes.ts';
import type { ReadonlyAttributes } from './attribute-blob.ts';

/** IVs in one table. There are two of them: when the newer one is full, the older one is forgotten. */
export const maxEntries = 1 << 20;
const firstSlots = 1 << 10;

const mixIn = (hash: number, bytes: Uint8Array): number => {
  let mixed = hash;
  for (let i = 0; i < bytes.length; i++) {
    mixed = Math.imul(mixed ^ (bytes[i] as number), 0x5bd1_e995) ^ (mixed >>> 15);
  }
  return mixed;
};

/** A hash of 32 bits (Murmur's way of mixing). Not for secrets: whoever makes a collision is refused an IV, nothing more. */
const mix = (identity: Uint8Array, iv: Uint8Array, seed: number): number => {
  let hash = mixIn(mixIn(seed ^ identity.length ^ (identity.length + iv.length), identity), iv);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
};

/** A set of pairs of 32-bit numbers, by open addressing; (0, 0) is an empty slot. */
class Table {
  size = 0;
  #slots = new Uint32Array(2 * firstSlots);

  /** The place of a pair, or of the empty slot where it belongs. */
  #place(low: number, high: number): number {
    const mask = this.#slots.length / 2 - 1;
    for (let at = low & mask; ; at = (at + 1) & mask) {
      const a = this.#slots[2 * at];
      const b = this.#slots[2 * at + 1];
      if ((a === low && b === high) || (a === 0 && b === 0)) return 2 * at;
    }
  }

  has(low: number, high: number): boolean {
    const at = this.#place(low, high);
    return this.#slots[at] === low && this.#slots[at + 1] === high;
  }

  add(low: number, high: number): void {
    if (4 * (this.size + 1) > this.#slots.length) this.#grow();
    const at = this.#place(low, high);
    this.#slots[at] = low;
    this.#slots[at + 1] = high;
    this.size++;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Uint32Array(2 * before.length);
    for (let i = 0; i < before.length; i += 2) {
      const [low = 0, high = 0] = [before[i], before[i + 1]];
      if (low === 0 && high === 0) continue;
      const at = this.#place(low, high);
      this.#slots[at] = low;
      this.#slots[at + 1] = high;
    }
  }
}

let newer = new Table();
let older = new Table();

/** What a key is known by: its own bytes would tell it, and these do not. */
export type KeyIdentity = Uint8Array;

const probe = new Uint8Array(16);
core.random(probe);

/** An AES key in the addon: what it makes of a block that nobody else knows. The same for each object that holds the key. */
export const identityHere = (key: KeyRef): KeyIdentity => {
  const identity = new Uint8Array(16);
  core.cipher(key, 'encrypt', { algorithm: 'aes-ecb' }, probe, identity);
  return identity;
};

/** A key that the service has: its length and check value, three bytes that it has in common with few others. */
export const identityThere = (attributes: ReadonlyAttributes): KeyIdentity => {
  const check = attributes.get(CKA.CHECK_VALUE);
  return Buffer.from([Number(attributes.get(CKA.VALUE_LEN)), ...(check instanceof Uint8Array ? check : [])]);
};

export class UsedIvs {
  readonly #seeds = new Uint32Array(2);

  constructor() {
    core.random(new Uint8Array(this.#seeds.buffer));
  }

  #low(identity: KeyIdentity, iv: Uint8Array): number {
    return mix(identity, iv, this.#seeds[0] as number);
  }

  /** Never zero, so that no pair looks like an empty slot. */
  #high(identity: KeyIdentity, iv: Uint8Array): number {
    return (mix(identity, iv, this.#seeds[1] as number) | 1) >>> 0;
  }

  /** Whether the key has used this IV, under any of the identities that it goes by. */
  has(identities: readonly KeyIdentity[], iv: Uint8Array): boolean {
    return identities.some((identity) => {
      const low = this.#low(identity, iv);
      const high = this.#high(identity, iv);
      return newer.has(low, high) || older.has(low, high);
    });
  }

  /** Marks an IV as used by a key. False when it was: nothing may be encrypted with it then. */
  claim(identities: readonly KeyIdentity[], iv: Uint8Array): boolean {
    if (this.has(identities, iv)) return false;
    for (const identity of identities) {
      if (newer.size >= maxEntries) {
        older = newer;
        newer = new Table();
      }
      newer.add(this.#low(identity, iv), this.#high(identity, iv));
    }
    return true;
  }
}
