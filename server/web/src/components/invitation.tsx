// The invitation of a new user, shown once.

import type { InvitedUser } from '../api/types.ts';
import { SecretOnceDialog, SecretValue } from './secret-once.tsx';
import { Time } from './time.tsx';

export const InvitationDialog = ({ invited, onClose }: { invited: InvitedUser; onClose: () => void }) => (
  <SecretOnceDialog
    title={`Invitation of “${invited.user.displayName}”`}
    notice="This is the only time the invitation is shown. Whoever opens it chooses the password: hand it over yourself."
    taken="I have handed it over or stored it"
    onClose={onClose}
  >
    {invited.invitation !== null && (
      <>
        <SecretValue label="Address to open, once" value={invited.invitation.url} />
        <p className="text-muted">
          It holds until <Time value={invited.invitation.expiresAt} />.
        </p>
      </>
    )}
  </SecretOnceDialog>
);
