// API tokens: 256 random bits, shown once, kept as a keyed hash. One for the API does what its
// roles say; one for metrics reads /metrics and nothing else.

import type { Grant } from './access.ts';
import type { Integrity } from './vault.ts';

export const tokenKinds = ['api', 'metrics'] as const;
export type TokenKind = (typeof tokenKinds)[number];

export interface ApiToken {
  readonly id: string;
  /** The tenant that it belongs to; null: the platform. */
  readonly tenantId: string | null;
  readonly kind: TokenKind;
  readonly name: string;
  /** What it may do through the API; one for metrics has none. */
  readonly grants: readonly Grant[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
  /**
   * The user whose token it is: it ends with them, and does no more than they may. Null: an
   * administrator made it for a program.
   */
  readonly ownerId: string | null;
  readonly integrity: Integrity;
}
