// API tokens: 256 random bits, shown once, kept as a keyed hash. An administrator's does everything; one for metrics reads
// /metrics and nothing else.

export const tokenKinds = ['administrator', 'metrics'] as const;
export type TokenKind = (typeof tokenKinds)[number];

export interface ApiToken {
  readonly id: string;
  readonly kind: TokenKind;
  readonly name: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
}
