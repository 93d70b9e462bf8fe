// Who uses a key and when it was last used: on its page, and as evidence before it is deleted.

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { keyPath, keysPath } from '../api/paths.ts';
import type { Key, KeyUse } from '../api/types.ts';
import { Async } from '../ui/page/async.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Panel } from '../ui/page/page.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { KeyCopiesNotice } from './key-copies.tsx';

/** A key that was used within these days may be needed tomorrow. */
const recentDays = 7;

export const useKeyUse = (id: string): UseQueryResult<KeyUse> =>
  useQuery({
    queryKey: [keysPath, id, 'use'],
    queryFn: ({ signal }) => send<KeyUse>({ method: 'GET', path: `${keyPath(id)}/use` }, { signal }),
    staleTime: 0,
  });

const User = ({ use }: { use: KeyUse }) => {
  const [last] = use.endpoints;
  if (use.application !== null)
    return (
      <>
        {' '}
        by the application <strong>{use.application.name}</strong>
      </>
    );
  if (last === undefined || last.lastUsedAt === null) return null;
  return (
    <>
      {' '}
      through the endpoint <strong>{last.name}</strong>
    </>
  );
};

/** When it was last used and by whom, read again; with a warning when that is not long ago. */
export const LastUse = ({
  query,
  goesOn = false,
}: {
  query: UseQueryResult<KeyUse>;
  /** The action does not end its use. */
  goesOn?: boolean;
}) => (
  <Async query={query} lines={1}>
    {(use) => {
      const named = use.endpoints.filter(({ state }) => state !== 'deleted');
      const isRecent = use.lastUsedAt !== null && Date.now() - Date.parse(use.lastUsedAt) < recentDays * 86_400_000;
      return (
        <div className="space-y-3">
          {isRecent ? (
            <Notice tone="warn" title={`This key was used within the last ${recentDays} days`}>
              Last <Time value={use.lastUsedAt} distance />
              <User use={use} />.{!goesOn && ' Further requests will fail.'}
            </Notice>
          ) : (
            <p>
              {use.lastUsedAt === null ? (
                'This key was never used.'
              ) : (
                <>
                  Last used <Time value={use.lastUsedAt} distance />
                  <User use={use} />.
                </>
              )}
            </p>
          )}
          {named.length > 0 && <p>Key store endpoints for this key: {named.map(({ name }) => name).join(', ')}.</p>}
        </div>
      );
    }}
  </Async>
);

/** What the deletion of a key means now: for the requester and for approvers. */
export const KeyPicture = ({ keyId }: { keyId: string }) => <LastUse query={useKeyUse(keyId)} />;

/** The panel of the key's page. */
export const WhoUses = ({ target: key }: { target: Pick<Key, 'id' | 'kind'> }) => {
  const query = useKeyUse(key.id);
  return (
    <Panel title="Usage" description="Times of use are updated every ten seconds.">
      <Async query={query} lines={3}>
        {(use) => (
          <div className="space-y-4">
            <KeyCopiesNotice copies={use.copies} />
            <Facts
              items={[
                ['Last used', <Time key="last" value={use.lastUsedAt} distance />],
                ['First used', <Time key="first" value={use.firstUsedAt} />],
                ...(use.application === null
                  ? []
                  : [
                      [
                        'TDE application',
                        <Link
                          key="application"
                          to="/tde/applications/$id"
                          params={{ id: use.application.id }}
                          className="link"
                        >
                          {use.application.name}
                        </Link>,
                      ] as const,
                      ['TDE group', use.application.groupName] as const,
                    ]),
              ]}
            />
            {use.endpoints.length > 0 ? (
              <DataTable
                caption="Key store endpoints"
                rows={use.endpoints}
                rowKey={(endpoint) => endpoint.id}
                columns={[
                  {
                    key: 'name',
                    header: 'Key store endpoint',
                    names: true,
                    cell: (endpoint) =>
                      endpoint.state === 'deleted' ? (
                        endpoint.name
                      ) : (
                        <Link to="/endpoints/$id" params={{ id: endpoint.id }} className="link">
                          {endpoint.name}
                        </Link>
                      ),
                  },
                  { key: 'state', header: 'State', cell: (endpoint) => <StateBadge state={endpoint.state} /> },
                  {
                    key: 'used',
                    header: 'Last use of the key',
                    cell: (endpoint) => <Time value={endpoint.lastUsedAt} distance />,
                  },
                  {
                    key: 'request',
                    header: 'Last request',
                    cell: (endpoint) => <Time value={endpoint.lastRequestAt} distance />,
                  },
                ]}
              />
            ) : (
              key.kind === 'general' && <p className="text-muted">There is no key store endpoint for this key.</p>
            )}
          </div>
        )}
      </Async>
    </Panel>
  );
};
