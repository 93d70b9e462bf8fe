// Inviting somebody: how they are called, and the invitation, shown once.

import type { InvitedUser } from '../api/types.ts';
import { NameField, TextField } from './field.tsx';
import { SecretOnceDialog, SecretValue } from './secret-once.tsx';
import { Time } from './time.tsx';

export const PersonFields = ({
  name,
  onName,
  displayName,
  onDisplayName,
  fault,
}: {
  name: string;
  onName: (name: string) => void;
  displayName: string;
  onDisplayName: (displayName: string) => void;
  fault: (path: string) => string | undefined;
}) => (
  <>
    <NameField help="The name to sign in with." value={name} onValue={onName} fault={fault('name')} />
    <TextField
      label="Full name"
      optional
      help="Lists and the audit log show this name."
      value={displayName}
      onValue={onDisplayName}
      fault={fault('displayName')}
    />
  </>
);

export const InvitationDialog = ({ invited, onClose }: { invited: InvitedUser; onClose: () => void }) => (
  <SecretOnceDialog
    title={`Invitation of “${invited.user.displayName}”`}
    notice="The invitation is shown only once. The person who opens it chooses the password, so give it only to this user."
    taken="I have stored the invitation or given it to the user"
    onClose={onClose}
  >
    {invited.invitation !== null && (
      <>
        <SecretValue label="Single-use address" value={invited.invitation.url} />
        <p className="text-muted">
          It expires at <Time value={invited.invitation.expiresAt} />.
        </p>
      </>
    )}
  </SecretOnceDialog>
);
