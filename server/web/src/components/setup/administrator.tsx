// First setup: the first administrator is a user.
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { InvitedUser, Token, User } from '../../api/types.ts';
import { ActionDialog } from '../forms/action-dialog.tsx';
import { FormDialog } from '../forms/form.tsx';
import { Button, buttonClass } from '../page/button.tsx';
import { InvitationDialog, PersonFields } from '../people/invitation.tsx';
import type { ListPage } from '../table/list-view.tsx';
import { ConfirmedBy, ConfirmStep, Finding, type Step, useWatched } from './shared.tsx';

const InviteAdministrator = ({
  onInvited,
  onClose,
}: {
  onInvited: (invited: InvitedUser) => void;
  onClose: () => void;
}) => {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [displayName, setDisplayName] = useState('');
  return (
    <FormDialog<InvitedUser>
      title="Invite the first administrator"
      call={{
        method: 'POST',
        path: '/api/users',
        body: {
          name,
          ...(displayName === '' ? {} : { displayName }),
          grants: [{ role: 'administrator', scope: null }],
        },
      }}
      creates
      submitLabel="Invite administrator"
      onCancel={onClose}
      onDone={async (invited) => {
        onInvited(invited);
        await client.invalidateQueries({ queryKey: ['/api/users'] });
      }}
    >
      {(fault) => (
        <>
          <PersonFields
            name={name}
            onName={setName}
            displayName={displayName}
            onDisplayName={setDisplayName}
            fault={fault}
          />
        </>
      )}
    </FormDialog>
  );
};

const isAdministrator = ({ grants }: Pick<User, 'grants'>): boolean =>
  grants.some(({ role }) => role === 'administrator');

export const Administrator = ({ step }: { step: Step }) => {
  const [inviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<InvitedUser | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const users = useWatched<ListPage<User>>('/api/users', { limit: 100 }).data?.items.filter(isAdministrator) ?? [];
  const first = useWatched<ListPage<Token>>('/api/tokens', { limit: 1000 }).data?.items.find(
    ({ name, revokedAt }) => name === 'first administrator' && revokedAt === null,
  );
  return (
    <>
      <p className="max-w-prose text-muted">
        The first token is for setup only. Revoke it after you have invited an administrator. Users sign in with their
        own name, a password, and a passkey or one-time code.
      </p>
      <Finding>{step.finding}</Finding>
      {step.state !== 'done' && users.length > 0 && (
        <p>
          Invited: {users.map(({ name }) => name).join(', ')}. Open the invitation, choose a password and add the second
          factor. If you do this in this browser, you are then signed in as that user.
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        {step.state !== 'done' && (
          <Button
            needs="users:manage"
            tone={users.length === 0 ? 'primary' : 'plain'}
            icon="plus"
            onClick={() => setInviting(true)}
          >
            Invite administrator
          </Button>
        )}
        {step.state === 'done' && first !== undefined && (
          <Button needs="tokens:manage" icon="blocked" onClick={() => setRevoking(first)}>
            Revoke first token…
          </Button>
        )}
        <Link to="/users" className={buttonClass()}>
          Users
        </Link>
      </div>
      <ConfirmedBy step={step} />
      {step.state === 'open' && <ConfirmStep step="administrator" confirmed text="Skip: use tokens only" />}
      {step.state === 'confirmed' && <ConfirmStep step="administrator" confirmed={false} text="Mark as not done" />}
      {inviting && (
        <InviteAdministrator
          onClose={() => setInviting(false)}
          onInvited={(made) => {
            setInviting(false);
            setInvited(made);
          }}
        />
      )}
      {invited !== null && <InvitationDialog invited={invited} onClose={() => setInvited(null)} />}
      {revoking !== null && (
        <ActionDialog
          title="Revoke the first token?"
          call={{ method: 'DELETE', path: `/api/tokens/${encodeURIComponent(revoking.id)}` }}
          submitLabel="Revoke token"
          danger
          renews={['/api/tokens']}
          done="Token revoked"
          onClose={() => setRevoking(null)}
        >
          <p>Sessions that use it end. Sign in as a user first.</p>
        </ActionDialog>
      )}
    </>
  );
};
