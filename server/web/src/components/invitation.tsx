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
    <NameField help="What they type to sign in." value={name} onValue={onName} fault={fault('name')} />
    <TextField
      label="Full name"
      optional
      help="What lists and the audit log show."
      value={displayName}
      onValue={onDisplayName}
      fault={fault('displayName')}
    />
  </>
);

export const InvitationDialog = ({ invited, onClose }: { invited: InvitedUser; onClose: () => void }) => (
  <SecretOnceDialog
    title={`Invitation of “${invited.user.displayName}”`}
    notice="The invitation is shown only once. The person who opens it chooses the password: give it to them yourself."
    taken="I have handed it over or stored it"
    onClose={onClose}
  >
    {invited.invitation !== null && (
      <>
        <SecretValue label="Address to open, once" value={invited.invitation.url} />
        <p className="text-muted">
          It expires at <Time value={invited.invitation.expiresAt} />.
        </p>
      </>
    )}
  </SecretOnceDialog>
);
