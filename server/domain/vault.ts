// A vault contains keys. While it is disabled or deleted, look-ups of its keys fail.

import type { DualControlRule } from './dual-control.ts';
import type { RotationProfile } from './notification.ts';

/** Whether the stored row still has the authentication code that the service wrote with it. */
export type Integrity = 'ok' | 'tampered';
/**
 * A row whose code was checked when it was loaded: what decides (a rule, a state, an owner) is read
 * from one.
 */
export type Sound<T extends { readonly integrity: Integrity }> = T & { readonly integrity: 'ok' };

export type VaultState = 'enabled' | 'disabled' | 'deleted';

export interface Vault {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /**
   * 'tde' vaults belong to a TDE group and hold master keys; 'general' ones contain keys that
   * people create.
   */
  readonly kind: 'general' | 'tde';
  readonly state: VaultState;
  readonly createdAt: number;
  /** Null: one person is enough. */
  readonly dualControl: DualControlRule | null;
  readonly profile: RotationProfile;
  readonly integrity: Integrity;
}
