// One API token: its roles, its times, and what was done by it and to it.

import { getRouteApi, Link } from '@tanstack/react-router';
import type { Token } from '../api/types.ts';
import { History } from '../audit/history.tsx';
import { useEvery } from '../session/every.ts';
import { Copyable } from '../ui/page/copy.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { titled } from './role-names.ts';
import { stateOfToken } from './token-list.tsx';

const route = getRouteApi('/tokens/$id');

export const TokenPage = () => {
  const { id } = route.useParams();
  const tokens = useEvery<Token>('/api/tokens', 'tokens:read');
  const token = tokens?.find((each) => each.id === id);
  return (
    <Page
      title={token?.name ?? 'API token'}
      crumbs={[{ text: 'API tokens', to: '/tokens' }]}
      badge={token !== undefined && <StateBadge state={stateOfToken(token)} integrity={token.integrity} />}
    >
      {tokens !== undefined && token === undefined && (
        <Panel>
          <EmptyState title="There is no token with this id">
            It may have been removed. The records below stay.
          </EmptyState>
        </Panel>
      )}
      {token !== undefined && (
        <Panel title="Token">
          <Facts
            items={[
              [
                'Roles',
                token.kind === 'metrics' ? (
                  'Only reads /metrics'
                ) : (
                  <ul key="roles">
                    {token.grants.map(({ role, scope }) => (
                      <li key={`${role} ${scope?.id ?? ''}`}>
                        <Link to="/roles/$id" params={{ id: role }} className="link">
                          {titled(role)}
                        </Link>
                        {scope !== null && ` for one ${scope.kind}`}
                      </li>
                    ))}
                  </ul>
                ),
              ],
              ['Created', <Time key="created" value={token.createdAt} />],
              ['Last used', <Time key="used" value={token.lastUsedAt} distance />],
              ['Expires', <Time key="expires" value={token.expiresAt} />],
              ['Revoked', <Time key="revoked" value={token.revokedAt} absent="no" />],
              ['Id', <Copyable key="id" value={token.id} label="token id" />],
            ]}
          />
        </Panel>
      )}
      <History title="Done by this token" of={{ actorId: id }} />
      <History title="Changes of this token" of={{ subjectId: id }} />
    </Page>
  );
};
