// Invites a user: the fields of the names, and the invitation, shown once.

import type { InvitedUser } from '../api/types.ts';
import { NameField, TextField } from '../ui/fields/field.tsx';
import { SecretOnceDialog, SecretValue, secretFile } from '../ui/fields/secret-once.tsx';
import { Time } from '../ui/page/time.tsx';

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
    <NameField
      label="User name"
      help="The user signs in with this name."
      value={name}
      onValue={onName}
      fault={fault('name')}
    />
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
    title={`Invitation for “${invited.user.displayName}”`}
    notice="The invitation is shown only once. Anyone who opens it can choose the password, so give it only to this user."
    taken="I have stored the invitation or given it to the user"
    onClose={onClose}
  >
    {invited.invitation !== null && (
      <>
        <SecretValue
          label="Single-use link"
          value={invited.invitation.url}
          file={secretFile('invitation', invited.user.name)}
        />
        <p className="text-muted">
          It expires at <Time value={invited.invitation.expiresAt} />.
        </p>
      </>
    )}
  </SecretOnceDialog>
);
