// Rows as they are stored; a test says only what it needs of them.
import { newId } from '../../server/base/ids.ts';
import type { Vault } from '../../server/domain/vault.ts';
import type { StoredUser } from '../../server/ports/people.ts';

export const storedVault = (row: Pick<Vault, 'tenantId'> & Partial<Vault>): Vault => ({
  ...{ id: newId(2), name: 'vault', kind: 'general', state: 'enabled', createdAt: 2 },
  ...{ dualControl: null, profile: 'standard', integrity: 'ok' },
  ...row,
});

/** One that has never signed in. */
export const storedUser = (row: Pick<StoredUser, 'name'> & Partial<StoredUser>): StoredUser => ({
  ...{ id: newId(4), tenantId: null, displayName: row.name, email: null, grants: [], state: 'active', createdAt: 4 },
  ...{ hasPassword: false, mustChangePassword: false, passwordChangedAt: null, subject: null, lastSignInAt: null },
  ...{ password: null, invitationHash: null, invitedUntil: null, integrity: 'ok' },
  ...row,
});
