// How a user signs in, and whether they can, as badges.

import type { User } from '../api/types.ts';
import { Badge, StateBadge } from '../ui/page/state-badge.tsx';
import { stateOfUser } from './user-state.ts';

const factorNames = { totp: 'one-time code', passkey: 'passkey', 'recovery-code': 'recovery codes' } as const;

export const UserFactors = ({ user }: { user: User }) => {
  const kinds = [...new Set(user.factors.filter(({ confirmedAt }) => confirmedAt !== null).map(({ kind }) => kind))];
  if (kinds.length > 0)
    return (
      <Badge tone="ok" icon="shield">
        {kinds.map((kind) => factorNames[kind]).join(', ')}
      </Badge>
    );
  return (
    <Badge tone={user.invitedUntil === null ? 'warn' : 'quiet'} icon={user.invitedUntil === null ? 'warning' : 'clock'}>
      {user.invitedUntil === null ? 'Password only' : 'Invited'}
    </Badge>
  );
};

export const UserState = ({ user }: { user: User }) =>
  user.lockedUntil === null ? (
    <StateBadge state={stateOfUser(user)} integrity={user.integrity} />
  ) : (
    <Badge tone="danger" icon="blocked">
      Locked
    </Badge>
  );
