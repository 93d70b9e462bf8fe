// First setup: the first administrator is a user, who can recover a lost second factor; tokens
// that never expire are revoked.

import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { setupPath } from '../../api/paths.ts';
import type { InvitedUser, Token, User } from '../../api/types.ts';
import { InvitationDialog, PersonFields } from '../../people/invitation.tsx';
import { ActionDialog } from '../../ui/forms/action-dialog.tsx';
import { FormDialog } from '../../ui/forms/form.tsx';
import { Button, buttonClass } from '../../ui/page/button.tsx';
import type { ListPage } from '../../ui/table/list-view.tsx';
import { AcceptRisk, Finding, type Step, useWatched } from './shared.tsx';

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
  const users = useWatched<ListPage<User>>('/api/users', { limit: 100 }).data?.items.filter(isAdministrator) ?? [];
  return (
    <>
      <p className="max-w-prose text-muted">
        Users sign in with their own name, a password, and a passkey or one-time code. The audit log then names the
        person.
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
            opens
            onClick={() => setInviting(true)}
          >
            Invite administrator
          </Button>
        )}
        <Link to="/users" className={buttonClass()}>
          Users
        </Link>
      </div>
      <AcceptRisk step={step} text="Accept the risk: use tokens only" />
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
    </>
  );
};

/** Administrator tokens of the platform that never expire. */
const isLasting = ({ grants, revokedAt, expiresAt }: Token): boolean =>
  revokedAt === null && expiresAt === null && isAdministrator({ grants });

export const LastingTokens = ({ step }: { step: Step }) => {
  const [revoking, setRevoking] = useState<Token | null>(null);
  const lasting = useWatched<ListPage<Token>>('/api/tokens', { limit: 1000 }).data?.items.filter(isLasting) ?? [];
  return (
    <>
      <p className="max-w-prose text-muted">
        The first token is for setup only. Sign in as an administrator, then revoke it. A token that is lost and never
        expires gives everything to its finder.
      </p>
      <Finding>{step.finding}</Finding>
      <div className="flex flex-wrap gap-2">
        {lasting.map((token) => (
          <Button key={token.id} needs="tokens:manage" icon="blocked" opens onClick={() => setRevoking(token)}>
            {`Revoke ${token.name}`}
          </Button>
        ))}
        <Link to="/tokens" className={buttonClass()}>
          API tokens
        </Link>
      </div>
      <AcceptRisk step={step} text="Accept the risk: keep a token that never expires" />
      {revoking !== null && (
        <ActionDialog
          title={`Revoke “${revoking.name}”?`}
          call={{ method: 'DELETE', path: `/api/tokens/${encodeURIComponent(revoking.id)}` }}
          submitLabel="Revoke token"
          danger
          renews={['/api/tokens', setupPath]}
          done="Token revoked"
          onClose={() => setRevoking(null)}
        >
          <p>Sessions that use it end. Sign in as a user first.</p>
        </ActionDialog>
      )}
    </>
  );
};

export const RecoveryCodes = ({ step }: { step: Step }) => (
  <>
    <p className="max-w-prose text-muted">
      Ten codes, each used once in place of the second factor. Create them in your profile and store them on paper.
    </p>
    <Finding>{step.finding}</Finding>
    <Link to="/profile" className={buttonClass()}>
      Open your profile
    </Link>
    <AcceptRisk step={step} text="Accept the risk: no recovery codes" />
  </>
);
