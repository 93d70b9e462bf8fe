// What changes of users have in common: their audit records, invitations, and what ends with a
// user's access.

import { serviceTenantId } from '../../base/ids.ts';
import type { Actor } from '../../domain/actor.ts';
import type { AuditDetails, AuditKind } from '../../domain/audit-event.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { RecordAddress } from '../../ports/key-record.ts';
import type { StoredFactor, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { makeBearer } from '../access/bearer.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { Invitation } from './people-operations.ts';

export type UserPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'people' | 'identity' | 'mailer' | 'log'> & {
  readonly provider: IdentityProvider | undefined;
};

export const recordUser = <K extends AuditKind>(
  tx: Repositories,
  kind: K,
  actor: Actor,
  user: Pick<StoredUser, 'id' | 'tenantId'>,
  details: AuditDetails<K>,
): Promise<unknown> => recordEvent(tx, kind, actor, about('user', user), details);

export type Issued = Invitation & { readonly hash: string };
export const invite = ({ core, ring, clock, people, identity }: UserPorts): Issued => {
  const token = makeBearer(core, 'invitation');
  return {
    token,
    hash: ring.hashToken('invitation', token),
    expiresAt: clock.now() + people.invitationMs,
    url: `${identity.publicUrl()}/invitation#${token}`,
  };
};

/** Where the secret of one-time passwords stands. */
const secretOf = (factorId: string): RecordAddress => ({
  tenantId: serviceTenantId,
  objectId: factorId,
  version: 1,
  class: 'second-factor',
});

/**
 * A deleted user: the row stays, so that its id is not used again, without the person. The audit
 * log keeps who it was.
 */
export const withoutPerson = (user: StoredUser): StoredUser => ({
  ...user,
  name: `deleted-${user.id}`,
  displayName: 'deleted user',
  email: null,
  state: 'deleted',
  password: null,
  hasPassword: false,
  subject: null,
  invitationHash: null,
  invitedUntil: null,
});

/** Whether that was done. */
export const isWithoutPerson = ({ id, name, email }: StoredUser): boolean => email === null && name === `deleted-${id}`;

export const endSessionsOf = (tx: Repositories, id: string): Promise<number> =>
  tx.sessions.removeOf({ kind: 'user', id }, null);

/** With the secret of a one-time password. */
export const removeFactor = async (
  tx: Repositories,
  { id, kind }: Pick<StoredFactor, 'id' | 'kind'>,
): Promise<void> => {
  if (kind === 'totp') await tx.records.wipe(secretOf(id));
  await tx.factors.remove(id);
};

/** Takes every factor of a user away. */
export const removeFactorsOf = async (tx: Repositories, userId: string): Promise<number> => {
  const factors = await tx.factors.list(userId);
  for (const factor of factors) await removeFactor(tx, factor);
  return factors.length;
};
