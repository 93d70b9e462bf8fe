// The signed-in user: names, password, second factors, sessions and permissions. For a token, only
// its permissions.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { hasPasskeys, makePasskey } from '../api/passkeys.ts';
import type { Factor, Session, User } from '../api/types.ts';
import { sessionQuery } from '../session/current-session.ts';
import { TextField } from '../ui/fields/field.tsx';
import { SecretOnceDialog, SecretValue, secretFile } from '../ui/fields/secret-once.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { Dialog } from '../ui/forms/dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { type Column, DataTable } from '../ui/table/data-table.tsx';
import { Rights } from './rights.tsx';
import { titled } from './role-names.ts';
import { SessionList } from './session-list.tsx';
import { TokenList } from './token-list.tsx';
import { EnrolTotp } from './totp.tsx';

const ChangePassword = ({ onClose }: { onClose: () => void }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  return (
    <FormDialog<Session>
      title="Change your password"
      call={{ method: 'POST', path: '/api/profile/password', body: { current, password } }}
      secretBody
      submitLabel="Change password"
      submitDisabled={password === '' || password !== again}
      onCancel={onClose}
      onDone={async () => {
        await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
        announce('Password changed. Your other sessions ended.');
        onClose();
      }}
    >
      {(fault) => (
        <>
          <TextField
            label="Current password"
            type="password"
            autoComplete="current-password"
            autoFocus
            value={current}
            onValue={setCurrent}
            fault={fault('current')}
          />
          <TextField
            label="New password"
            type="password"
            autoComplete="new-password"
            help="Use a long passphrase: four or five words that only you know."
            value={password}
            onValue={setPassword}
            fault={fault('password')}
          />
          <TextField
            label="Confirm password"
            type="password"
            autoComplete="new-password"
            value={again}
            onValue={setAgain}
            fault={again !== '' && again !== password ? 'Passwords do not match' : undefined}
          />
        </>
      )}
    </FormDialog>
  );
};

const factorNames: Readonly<Record<Factor['kind'], string>> = {
  totp: 'One-time code',
  passkey: 'Passkey',
  'recovery-code': 'Recovery code',
};

const AddPasskey = ({ onError }: { onError: (error: Error | null) => void }) => {
  const announce = useAnnounce();
  const client = useQueryClient();
  const passkey = useMutation({
    mutationFn: async () => {
      const answer = await makePasskey();
      return send<Session>({ method: 'POST', path: '/api/profile/passkeys', body: { name: 'Passkey', answer } });
    },
    onMutate: () => onError(null),
    onError,
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['/api/profile'] });
      announce('Passkey added');
    },
  });
  return (
    <Button icon="key" busy={passkey.isPending} onClick={() => passkey.mutate()}>
      Add passkey
    </Button>
  );
};

const RecoveryCodesDialog = ({ onClose }: { onClose: () => void }) => {
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  return codes === null ? (
    <FormDialog<{ readonly codes: readonly string[] }>
      title="Create recovery codes?"
      call={{ method: 'POST', path: '/api/profile/recovery-codes', body: {} }}
      creates
      submitLabel="Create codes"
      onCancel={onClose}
      onDone={(made) => setCodes(made.codes)}
    >
      {() => <p>Use them if you lose your phone. Each code works once. Earlier codes stop working.</p>}
    </FormDialog>
  ) : (
    <SecretOnceDialog
      title="Your recovery codes"
      notice="The codes are shown only once. Anyone who has one of them and your password can sign in as you."
      taken="I have stored them away from my phone"
      onClose={onClose}
    >
      <SecretValue label="Recovery codes" value={codes.join(' ')} file={secretFile('recovery-codes', 'own')} />
    </SecretOnceDialog>
  );
};

const TotpDialog = ({ onClose }: { onClose: () => void }) => {
  const announce = useAnnounce();
  return (
    <Dialog title="Add a one-time code" onClose={onClose}>
      <EnrolTotp
        onDone={() => {
          announce('One-time code added');
          onClose();
        }}
      />
    </Dialog>
  );
};

const RemoveDialog = ({ factor, onClose }: { factor: Factor; onClose: () => void }) => (
  <ActionDialog
    title={`Remove “${factor.name}”?`}
    call={{ method: 'DELETE', path: `/api/profile/factors/${encodeURIComponent(factor.id)}` }}
    submitLabel="Remove factor"
    danger
    renews={['/api/profile']}
    done={`“${factor.name}” removed`}
    onClose={onClose}
  >
    <p>Its codes stop working.</p>
  </ActionDialog>
);

const factorColumns = (remove: (factor: Factor) => void): readonly Column<Factor>[] => [
  { key: 'name', header: 'Name', names: true, cell: ({ name }) => name },
  { key: 'kind', header: 'Kind', cell: ({ kind }) => factorNames[kind] },
  { key: 'since', header: 'Since', cell: ({ createdAt }) => <Time value={createdAt} /> },
  { key: 'used', header: 'Last used', cell: ({ lastUsedAt }) => <Time value={lastUsedAt} distance /> },
  {
    key: 'actions',
    header: 'Actions',
    end: true,
    actions: true,
    cell: (factor) => (
      <Button aria-label={`Remove… ${factor.name}`} onClick={() => remove(factor)} opens>
        Remove
      </Button>
    ),
  },
];

const Factors = ({ user }: { user: User }) => {
  const [asked, ask] = useState<'totp' | 'recovery-codes' | Factor | null>(null);
  const [passkeyError, setPasskeyError] = useState<Error | null>(null);
  const close = () => ask(null);
  const factors = user.factors.filter(({ confirmedAt, kind }) => confirmedAt !== null && kind !== 'recovery-code');
  const left = user.factors.filter(({ kind, lastUsedAt }) => kind === 'recovery-code' && lastUsedAt === null).length;
  return (
    <Panel
      title="Second factors"
      description={`${left} recovery codes left.`}
      actions={
        <>
          {factors.length > 0 && <Button onClick={() => ask('recovery-codes')}>Create recovery codes</Button>}
          {hasPasskeys() && <AddPasskey onError={setPasskeyError} />}
          <Button icon="plus" onClick={() => ask('totp')}>
            Add one-time code
          </Button>
        </>
      }
      flush
    >
      {passkeyError !== null && (
        <div className="p-4">
          <ProblemView error={passkeyError} compact />
        </div>
      )}
      {factors.length === 0 ? (
        <EmptyState title="Only your password protects your account">
          Add a one-time code. An app on your phone shows a new code every 30 seconds.
        </EmptyState>
      ) : (
        <DataTable caption="Second factors" rows={factors} rowKey={({ id }) => id} columns={factorColumns(ask)} />
      )}
      {asked === 'totp' && <TotpDialog onClose={close} />}
      {asked === 'recovery-codes' && <RecoveryCodesDialog onClose={close} />}
      {asked !== null && typeof asked === 'object' && <RemoveDialog factor={asked} onClose={close} />}
    </Panel>
  );
};

const Person = () => {
  const [changing, setChanging] = useState(false);
  const query = useQuery({
    queryKey: ['/api/profile'],
    queryFn: ({ signal }) => send<User>({ method: 'GET', path: '/api/profile' }, { signal }),
  });
  return (
    <>
      <Panel
        title="Account"
        actions={
          <Button opens onClick={() => setChanging(true)}>
            Change password
          </Button>
        }
      >
        <Async query={query}>
          {(user) => (
            <Facts
              items={[
                ['Full name', user.displayName],
                ['User name', <code key="name">{user.name}</code>],
                ['E-mail', user.email ?? '–'],
                ['Roles', user.grants.map(({ role }) => titled(role)).join(', ')],
                ['Password changed', <Time key="password" value={user.passwordChangedAt} />],
                ['Last sign-in', <Time key="seen" value={user.lastSignInAt} />],
              ]}
            />
          )}
        </Async>
      </Panel>
      {query.data !== undefined && <Factors user={query.data} />}
      <SessionList listPath="/api/profile/sessions" title="Your sessions" own />
      <TokenList listPath="/api/profile/tokens" title="Your tokens" own />
      {changing && <ChangePassword onClose={() => setChanging(false)} />}
    </>
  );
};

export const ProfilePage = () => {
  const session = useQuery(sessionQuery).data;
  return (
    <Page title="Profile" description="Your account and your permissions.">
      {session?.kind === 'user' && <Person />}
      {session !== undefined && session !== null && (
        <Panel
          title="Permissions"
          description={session.kind === 'token' ? `You are signed in with the token “${session.name}”.` : undefined}
        >
          <Rights rights={session.permissions} />
        </Panel>
      )}
    </Page>
  );
};
