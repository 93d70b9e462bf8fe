// API tokens, as their list and their pages show them.

import type { Token } from '../../api/types.ts';

export const tokensPath = '/api/tokens';

export const tokenState = ({ revokedAt, expiresAt }: Token): string => {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
};
