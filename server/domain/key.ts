// Keys: general-purpose ones and TDE master keys share one row type. Material is elsewhere and
// sealed; nothing here is secret.

import type { KeyCopies } from './copies.ts';
import type { EndpointState } from './endpoint.ts';
import type { EffectiveState, KeyState } from './lifecycle.ts';
import type { Integrity } from './vault.ts';

/**
 * With the number of bits, which key it is: `ec` is a curve of NIST, `brainpool` one of RFC 5639
 * (r1).
 */
export type KeyAlgorithm =
  | 'aes'
  | 'generic'
  | 'rsa'
  | 'ec'
  | 'secp256k1'
  | 'brainpool'
  | 'ed25519'
  | 'ed448'
  | 'x25519'
  | 'x448';
/** What is on the token of an application. */
export type ObjectClass = 'secret-key' | 'public-key' | 'private-key' | 'certificate' | 'data';
export const keyUsages = ['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign', 'verify', 'derive'] as const;
export type KeyUsage = (typeof keyUsages)[number];

export interface Key {
  readonly id: string;
  readonly tenantId: string;
  readonly vaultId: string;
  /**
   * For people. A master key's name is its label when that is text, else the label in hexadecimal.
   */
  readonly name: string;
  /**
   * 'general': made by a person. 'master': a token key of a TDE application, with its own sealed
   * copy.
   */
  readonly kind: 'general' | 'master';
  readonly algorithm: KeyAlgorithm;
  readonly bits: number;
  readonly usages: readonly KeyUsage[];
  readonly state: KeyState;
  /**
   * Set by disable, cleared by enable; kept through soft deletion, so that deleting a disabled key
   * does not free its use.
   */
  readonly disabledAt: number | null;
  readonly currentVersion: number;
  readonly createdAt: number;
  readonly deletedAt: number | null;
  /** The time of the last re-import after the soft deletion; null when there was none. */
  readonly reimportedAt: number | null;
  readonly destroyedAt: number | null;
  /** From here the service knows no copy that opens the key (copies.ts). */
  readonly unrecoverableAt: number | null;
  /**
   * The id of the original, for a copy that a restore made in another tenant; a copy of a copy
   * names the first original. Null: the key is not such a copy. Never changes.
   */
  readonly copyOf: string | null;
  /** The TDE application that owns it; null for general keys. */
  readonly applicationId: string | null;
  /** Sorted, each once (base/tags.ts). */
  readonly tags: readonly string[];
  /** Marks of use, to some seconds; null: it was not used. */
  readonly firstUsedAt: number | null;
  readonly lastUsedAt: number | null;
  /**
   * 'tampered': a stored column was changed from outside; every use is refused and an alarm was
   * recorded.
   */
  readonly integrity: Integrity;
}

/** A key as people see it: with what its vault leaves of its state. */
export interface ShownKey extends Key {
  readonly effectiveState: EffectiveState;
}

/** A key that was just made: a general one of 256 bits, unless it is told otherwise. */
export const newKey = (
  key: Pick<Key, 'id' | 'tenantId' | 'vaultId' | 'name' | 'createdAt'> &
    Partial<Pick<Key, 'kind' | 'algorithm' | 'bits' | 'usages' | 'applicationId' | 'tags'>>,
): Key => ({
  kind: 'general',
  algorithm: 'aes',
  bits: 256,
  usages: ['encrypt', 'decrypt'],
  state: 'active',
  disabledAt: null,
  currentVersion: 1,
  deletedAt: null,
  reimportedAt: null,
  destroyedAt: null,
  unrecoverableAt: null,
  copyOf: null,
  applicationId: null,
  tags: [],
  firstUsedAt: null,
  lastUsedAt: null,
  integrity: 'ok',
  ...key,
});

export interface KeyVersion {
  readonly keyId: string;
  readonly version: number;
  readonly createdAt: number;
  /**
   * Whether the shared vault contains a copy now. False after soft deletion (until re-import) and
   * after destruction.
   */
  readonly vaultCopy: boolean;
}

/** Who uses a key. */
export interface KeyUse {
  readonly keyId: string;
  readonly firstUsedAt: number | null;
  readonly lastUsedAt: number | null;
  readonly copies: KeyCopies;
  /**
   * Key store endpoints whose key it is, and deleted ones through which it was used; the last use
   * first.
   */
  readonly endpoints: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: EndpointState;
    /** When something was encrypted or decrypted through it. */
    readonly lastUsedAt: number | null;
    /** When it was last called with one of the credentials that it has now, whatever for. */
    readonly lastRequestAt: number | null;
  }[];
  /** The TDE application whose master key it is; null for other keys. */
  readonly application: {
    readonly id: string;
    readonly name: string;
    readonly groupId: string;
    readonly groupName: string;
  } | null;
}

/** What a key and its copies in other tenants have in common. */
export const originalOf = ({ id, copyOf }: Pick<Key, 'id' | 'copyOf'>): string => copyOf ?? id;
