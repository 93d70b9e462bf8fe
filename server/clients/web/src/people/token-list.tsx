// The tokens that a user created for themselves: on their page, and in one's own profile.

import { useState } from 'react';
import type { Token } from '../api/types.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { titled } from './role-names.ts';

/** What a token may do, for a person. */
export const mayOf = ({ kind, grants }: Token): string =>
  kind === 'metrics'
    ? 'Metrics'
    : grants.map(({ role, scope }) => (scope === null ? titled(role) : `${titled(role)} (${scope.kind})`)).join(', ');

export const stateOfToken = (token: Token): string => {
  if (token.revokedAt !== null) return 'revoked';
  if (token.expiresAt !== null && Date.parse(token.expiresAt) <= Date.now()) return 'expired';
  return 'active';
};

export const TokenList = ({
  listPath,
  filters = {},
  title,
  own = false,
}: {
  listPath: '/api/tokens' | '/api/profile/tokens';
  filters?: { readonly userId?: string };
  title: string;
  /** The tokens are the caller's: no permission is needed. */
  own?: boolean;
}) => {
  const list = useList<Token>(listPath, filters);
  const [revoking, setRevoking] = useState<Token | null>(null);
  return (
    <Panel title={title} description="They do no more than their user may, and end with the user." flush>
      <ListView
        list={list}
        caption={title}
        rowKey={({ id }) => id}
        columns={[
          { key: 'name', header: 'Name', names: true, cell: ({ name }) => name },
          { key: 'roles', header: 'Roles', cell: mayOf },
          { key: 'state', header: 'State', cell: (token) => <StateBadge state={stateOfToken(token)} /> },
          { key: 'used', header: 'Last used', cell: (token) => <Time value={token.lastUsedAt} distance /> },
          { key: 'expires', header: 'Expires', cell: (token) => <Time value={token.expiresAt} /> },
          {
            key: 'actions',
            header: 'Actions',
            end: true,
            actions: true,
            cell: (token) =>
              stateOfToken(token) === 'active' && (
                <Button
                  {...(own ? {} : { needs: 'tokens:manage' as const })}
                  aria-label={`Revoke the token ${token.name}`}
                  opens
                  onClick={() => setRevoking(token)}
                >
                  Revoke
                </Button>
              ),
          },
        ]}
        empty={
          <EmptyState title="No tokens">
            {own
              ? 'Create one for a program that acts for you. The audit log names you as the actor.'
              : 'Tokens that the user creates in their profile appear here.'}
          </EmptyState>
        }
      />
      {revoking !== null && (
        <ActionDialog
          title={`Revoke “${revoking.name}”?`}
          call={{ method: 'DELETE', path: `${listPath}/${encodeURIComponent(revoking.id)}` }}
          submitLabel="Revoke token"
          danger
          renews={[listPath]}
          done={`Token “${revoking.name}” revoked`}
          onClose={() => setRevoking(null)}
        >
          <p>Programs that use it will be refused.</p>
        </ActionDialog>
      )}
    </Panel>
  );
};
