// Administrator tokens: 256 random bits, shown once, kept as a keyed hash.

export interface ApiToken {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
}
