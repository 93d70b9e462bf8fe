// What a database binds to: groups, applications, their credentials and instances, master keys and
// token objects.

import type { CompatibilitySwitch } from '../base/compatibility-switches.ts';
import type { KeyCopies } from './copies.ts';
import type { KeyAlgorithm, KeyUsage, ObjectClass, ShownKey } from './key.ts';
import type { KeyRules } from './key-custody.ts';
import type { KeyState } from './lifecycle.ts';
import type { Integrity } from './vault.ts';

/**
 * How long an agent can repeat or withdraw a request: longer than a service is likely to be out of
 * its reach.
 */
export const repeatMs = 7 * 86_400_000;

/**
 * Applications of one group may find and use each other's master keys (a cloned PDB needs it), not
 * change or destroy them.
 */
export interface TdeGroup {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /**
   * The vault that contains the shared copies of the group's master keys. It is created with the
   * group.
   */
  readonly vaultId: string;
  readonly createdAt: number;
  readonly integrity: Integrity;
}

export type ApplicationState = 'enabled' | 'disabled';

/**
 * Where the credentials of an application may be used from. Each list that is not empty must be
 * met.
 */
export interface ApplicationCallers {
  /** Addresses and networks (CIDR). Empty: any address. */
  readonly networks: readonly string[];
  /**
   * Client certificates, PEM: the caller shows exactly one of these, not one of the same issuer.
   * Empty: none is required.
   */
  readonly certificates: readonly string[];
}

export const anyCaller: ApplicationCallers = { networks: [], certificates: [] };
export const isAnyCaller = ({ networks, certificates }: ApplicationCallers): boolean =>
  networks.length + certificates.length === 0;

export interface TdeApplication {
  readonly id: string;
  readonly tenantId: string;
  readonly groupId: string;
  readonly name: string;
  /** The app_id offered in server_url. Instances may use others: any `appIdPattern` text. */
  readonly appId: string;
  /**
   * The label of its PKCS#11 token: its first name. It never changes, because programs find the
   * token by it.
   */
  readonly tokenLabel: string;
  readonly state: ApplicationState;
  /** The weaker cryptography that it may use, in the order of `compatibilitySwitches`. */
  readonly compatibility: readonly CompatibilitySwitch[];
  readonly callers: ApplicationCallers;
  readonly createdAt: number;
  readonly integrity: Integrity;
}

/** What an app_id may look like in server_url. Case-sensitive. */
export const appIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * One access_guid of an application: never the value, which is kept as a keyed hash only. At most
 * two are live.
 */
export interface AccessGuid {
  readonly id: string;
  readonly applicationId: string;
  readonly createdAt: number;
  readonly removedAt: number | null;
  readonly lastUsedAt: number | null;
  readonly integrity: Integrity;
}

/**
 * Who used an application: one row per (application, access_guid, app_id, host, process, operating
 * system user).
 */
export interface Instance {
  readonly id: string;
  readonly applicationId: string;
  readonly accessGuidId: string;
  readonly appId: string;
  readonly host: string;
  readonly process: string;
  readonly osUser: string;
  readonly libraryVersion: string;
  readonly agentVersion: string;
  /** The last process id seen. */
  readonly pid: number;
  readonly firstUsedAt: number;
  readonly lastUsedAt: number;
  readonly uses: number;
}

export type { ObjectClass } from './key.ts';

/** A token object as the provider sees it. Key objects share their id with a `Key`. */
export interface TokenObject {
  /** Stable, positive, below 2^31, never reused. */
  readonly handle: number;
  readonly id: string;
  readonly tenantId: string;
  readonly groupId: string;
  readonly applicationId: string;
  readonly class: ObjectClass;
  /** Base64 of the label's bytes. */
  readonly label: string;
  readonly algorithm: KeyAlgorithm | null;
  readonly bits: number | null;
  readonly usages: readonly KeyUsage[];
  readonly sensitive: boolean;
  readonly extractable: boolean;
  /**
   * Whether the key was sensitive from the moment that it was made, and what it was derived from
   * too. Never changes.
   */
  readonly alwaysSensitive: boolean;
  /**
   * Whether the key, and what it was derived from, could never be extracted: its value exists
   * nowhere else. Never changes.
   */
  readonly neverExtractable: boolean;
  readonly modifiable: boolean;
  readonly destroyable: boolean;
  readonly local: boolean;
  readonly private: boolean;
  /** Base64, or null. */
  readonly checkValue: string | null;
  /** Base64 of the SubjectPublicKeyInfo of either half of a pair; null for all else. */
  readonly publicKey: string | null;
  /**
   * Whether the key has wrapped a sensitive key: then it never decrypts again. Of an RSA pair the
   * private half has it.
   */
  readonly wrappedSensitive: boolean;
  /** What its maker has laid down for it; null: nothing. */
  readonly rules: KeyRules | null;
  /** Base64 of the agent's own encoding of every other attribute. */
  readonly attributes: string;
  readonly createdAt: number;
  /** Another one after each change of the object; absent where it was not read from the store. */
  readonly version?: number | undefined;
  /** The key's state; data objects are always active. */
  readonly state: KeyState;
  readonly integrity: Integrity;
}

/** A master key as people see it. */
export interface MasterKey extends ShownKey {
  readonly kind: 'master';
  readonly applicationId: string;
  readonly groupId: string;
  readonly handle: number;
  /** Base64 of the label's bytes. */
  readonly label: string;
  /** 'imported': also what was unwrapped or derived. */
  readonly origin: 'generated' | 'imported';
  readonly class: 'secret-key' | 'private-key';
  readonly sensitive: boolean;
  readonly extractable: boolean;
  /** Whether the key has wrapped a sensitive key: then it never decrypts again. */
  readonly neverDecrypts: boolean;
  /**
   * The check value of a secret key: the first bytes of a block of zeros encrypted, hexadecimal;
   * null for a private key.
   */
  readonly checkValue: string | null;
  /** The public half of a private key, Base64 of SubjectPublicKeyInfo; null for a secret key. */
  readonly publicKey: string | null;
  /** Whether the application's sealed copy exists (it does until destruction). */
  readonly sealedCopy: boolean;
  readonly vaultCopy: boolean;
  /**
   * Whether this is the newest of the application's secret keys that are not destroyed, such as the
   * result of a rotation.
   */
  readonly newest: boolean;
}

/** What it means to move an application to another group: shown before, recorded with it. */
export interface ApplicationMove {
  readonly from: { readonly id: string; readonly name: string };
  readonly to: { readonly id: string; readonly name: string };
  /** Its own keys and other token objects: they go with it, at once, in every open session. */
  readonly keys: number;
  readonly objects: number;
  /** Labels of its keys that a key in the new group has: with any, it is not moved. At most 100. */
  readonly conflictingLabels: readonly string[];
  /** Keys of others in the group that it leaves: it can no longer use them. */
  readonly keysLost: number;
  /** Applications that it leaves: they can no longer use its keys, nor it theirs. */
  readonly leaves: readonly {
    readonly id: string;
    readonly name: string;
    readonly keys: number;
    readonly instances: readonly Instance[];
  }[];
  /** Applications that it joins: they can use its keys from then on, and it theirs. */
  readonly joins: readonly { readonly id: string; readonly name: string; readonly keys: number }[];
  /** Who uses the application, latest first. */
  readonly instances: readonly Instance[];
}

/**
 * Which instances a destruction would cut off: everybody who used an access_guid of the owning
 * application, and borrowers of the group.
 */
export interface BlastRadius {
  readonly keyId: string;
  readonly applicationId: string;
  readonly applicationName: string;
  /** Instances of the owning application, latest use first. */
  readonly instances: readonly Instance[];
  /** Other applications of the group: they can find and use the key too. */
  readonly groupApplications: readonly {
    readonly id: string;
    readonly name: string;
    readonly instances: readonly Instance[];
  }[];
  readonly appIds: readonly string[];
  readonly hosts: readonly string[];
  readonly lastUsedAt: number | null;
  /** Copies of the key, which stay usable after the destruction. */
  readonly copies: KeyCopies;
}
