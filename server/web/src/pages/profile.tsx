// Who I am, what I may do, my password, my sessions. A token has no profile: it shows what the token may do.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { Session, User } from '../api/types.ts';
import { sessionQuery } from '../app/session.ts';
import { useAnnounce } from '../components/announce.tsx';
import { Async } from '../components/async.tsx';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { FormDialog } from '../components/form.tsx';
import { Facts, Page, Panel } from '../components/page.tsx';
import { titled } from '../components/roles.ts';
import { Time } from '../components/time.tsx';
import { SessionList } from './users.tsx';

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
      submitLabel="Change"
      submitDisabled={password === '' || password !== again}
      onCancel={onClose}
      onDone={async () => {
        await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
        announce('Your password is changed; your other sessions have ended');
        onClose();
      }}
    >
      {(fault) => (
        <>
          <TextField
            label="Present password"
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
            help="Long is better than strange: four or five words that belong to you alone."
            value={password}
            onValue={setPassword}
            fault={fault('password')}
          />
          <TextField
            label="Once more"
            type="password"
            autoComplete="new-password"
            value={again}
            onValue={setAgain}
            fault={again !== '' && again !== password ? 'is not the same' : undefined}
          />
        </>
      )}
    </FormDialog>
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
      <Panel title="You" actions={<Button onClick={() => setChanging(true)}>Change password</Button>}>
        <Async query={query}>
          {(user) => (
            <Facts
              items={[
                ['Name', user.displayName],
                ['Signs in as', <code key="name">{user.name}</code>],
                ['E-mail', user.email ?? '–'],
                ['Roles', user.grants.map(({ role }) => titled(role)).join(', ')],
                ['Password changed', <Time key="password" value={user.passwordChangedAt} />],
                ['Last sign-in', <Time key="seen" value={user.lastSignInAt} />],
              ]}
            />
          )}
        </Async>
      </Panel>
      <h2 className="font-semibold">Your sessions</h2>
      <SessionList listPath="/api/profile/sessions" endPath={(id) => `/api/profile/sessions/${id}`} />
      {changing && <ChangePassword onClose={() => setChanging(false)} />}
    </>
  );
};

export const ProfilePage = () => {
  const session = useQuery(sessionQuery).data;
  return (
    <Page title="Profile" description="Who you are here, and what you may do.">
      {session?.kind === 'user' && <Person />}
      {session !== undefined && session !== null && (
        <Panel
          title="What you may do"
          description={session.kind === 'token' ? `You are signed in with the token “${session.name}”.` : undefined}
        >
          <ul className="grid gap-x-6 gap-y-1 sm:grid-cols-2 lg:grid-cols-3">
            {session.permissions.map(({ permission, scope, tenantId }) => (
              <li key={`${permission} ${scope?.id ?? ''} ${tenantId ?? ''}`} className="wrap-anywhere">
                <code>{permission}</code>
                {scope !== null && <span className="text-muted"> with one {scope.kind}</span>}
                {scope === null && tenantId !== null && <span className="text-muted"> in one tenant</span>}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </Page>
  );
};
