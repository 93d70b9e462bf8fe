// A vault holds keys. When it is disabled or deleted, look-ups of its keys fail (specification section 2).

import type { DualControlRule } from './dual-control.ts';
import type { RotationProfile } from './notification.ts';

/** Whether the stored row still bears the authentication code that the service wrote with it. */
export type Integrity = 'ok' | 'tampered';

export type VaultState = 'enabled' | 'disabled' | 'deleted';

export interface Vault {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  /** 'tde' vaults belong to a TDE group and hold master keys; 'general' ones hold keys made by people. */
  readonly kind: 'general' | 'tde';
  readonly state: VaultState;
  readonly createdAt: number;
  /** Null: one person is enough. */
  readonly dualControl: DualControlRule | null;
  readonly profile: RotationProfile;
  readonly integrity: Integrity;
}
