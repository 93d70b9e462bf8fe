// Who is signed in: the sessions of all users, of one, or one's own.

import { useState } from 'react';
import type { OpenSession } from '../api/types.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { Facts, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';

const methodNames: Readonly<Record<OpenSession['method'], string>> = {
  password: 'Password',
  invitation: 'Invitation',
  passkey: 'Passkey',
  openid: 'OpenID',
  token: 'Token',
};

export const SessionList = ({
  listPath,
  filters = {},
  title,
  own = false,
}: {
  listPath: '/api/sessions' | '/api/profile/sessions';
  filters?: { readonly userId?: string };
  title?: string;
  /**
   * The sessions are the caller's: no permission is needed, and the others can be ended together.
   */
  own?: boolean;
}) => {
  const list = useList<OpenSession>(listPath, filters);
  const [endingOthers, setEndingOthers] = useState(false);
  const [ending, setEnding] = useState<OpenSession | null>(null);
  return (
    <Panel
      {...(title === undefined ? {} : { title })}
      actions={own && <Button onClick={() => setEndingOthers(true)}>Sign out other sessions</Button>}
      flush
    >
      <ListView
        list={list}
        endless={title === undefined}
        caption="Sessions"
        rowKey={({ id }) => id}
        columns={[
          {
            key: 'who',
            header: 'User',
            names: true,
            cell: ({ holder, current }) => (
              <span className="inline-flex flex-wrap items-center gap-2">
                {holder.name}
                {current && (
                  <Badge tone="ok" icon="active">
                    This one
                  </Badge>
                )}
              </span>
            ),
          },
          {
            key: 'method',
            header: 'Signed in with',
            cell: ({ method, secondFactor }) => `${methodNames[method]}${secondFactor ? ', second factor' : ''}`,
          },
          { key: 'peer', header: 'Address', cell: ({ peer }) => <code>{peer ?? '–'}</code> },
          { key: 'used', header: 'Last used', cell: ({ usedAt }) => <Time value={usedAt} distance /> },
          { key: 'ends', header: 'Expires', cell: ({ expiresAt }) => <Time value={expiresAt} /> },
          {
            key: 'actions',
            header: 'Actions',
            end: true,
            actions: true,
            cell: (session) => (
              <Button
                {...(own ? {} : { needs: 'users:manage' as const })}
                aria-label={`End… the session of ${session.holder.name}`}
                opens
                onClick={() => setEnding(session)}
              >
                End
              </Button>
            ),
          },
        ]}
        detail={({ id, agent, createdAt }) => (
          <Facts
            items={[
              ['Id', <code key="id">{id}</code>],
              ['Since', <Time key="since" value={createdAt} seconds />],
              [
                'Browser',
                <span key="agent" className="wrap-anywhere">
                  {agent ?? '–'}
                </span>,
              ],
            ]}
          />
        )}
        empty={<EmptyState title="No sessions">Sessions of the console appear here.</EmptyState>}
      />
      {ending !== null && (
        <ActionDialog
          title={`End the session of “${ending.holder.name}”?`}
          call={{ method: 'DELETE', path: `${listPath}/${encodeURIComponent(ending.id)}` }}
          submitLabel="End session"
          danger
          renews={[listPath]}
          done="Session ended"
          onClose={() => setEnding(null)}
        >
          <p>The user must sign in again in that browser.</p>
        </ActionDialog>
      )}
      {endingOthers && (
        <ActionDialog<{ readonly ended: number }>
          title="Sign out all your other sessions?"
          call={{ method: 'DELETE', path: '/api/profile/sessions' }}
          submitLabel="Sign out other sessions"
          danger
          renews={[listPath]}
          done={({ ended }) => `${ended} other ${ended === 1 ? 'session' : 'sessions'} ended`}
          onClose={() => setEndingOthers(false)}
        >
          <p>This session stays. Your API tokens stay valid.</p>
        </ActionDialog>
      )}
    </Panel>
  );
};
