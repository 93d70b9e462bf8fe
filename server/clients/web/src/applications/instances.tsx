// The hosts and processes that use an application, and since when.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath } from '../api/paths.ts';
import type { Instance } from '../api/types.ts';
import { Async } from '../ui/page/async.tsx';
import { testConnection } from '../ui/page/config-lines.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';

export const InstanceTable = ({ caption, instances }: { caption: string; instances: readonly Instance[] }) => (
  <DataTable
    caption={caption}
    rows={instances}
    rowKey={(instance) => instance.id}
    columns={[
      { key: 'appId', header: 'app_id', names: true, cell: (instance) => <code>{instance.appId}</code> },
      { key: 'host', header: 'Host', cell: (instance) => <span className="break-all">{instance.host}</span> },
      {
        key: 'process',
        header: 'Process',
        cell: (instance) => (
          <span title={`Last process id ${instance.pid}`} className="break-all">
            {instance.process} <span className="text-muted">({instance.osUser})</span>
          </span>
        ),
      },
      { key: 'library', header: 'Library', cell: (instance) => instance.libraryVersion },
      { key: 'used', header: 'Last seen', cell: (instance) => <Time value={instance.lastUsedAt} distance /> },
    ]}
  />
);

export const Instances = ({ id }: { id: string }) => {
  const query = useQuery({
    queryKey: [applicationsPath, id, 'instances'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Instance[] }>(
        { method: 'GET', path: `${applicationPath(id)}/instances` },
        { signal },
      ),
    refetchInterval: 30_000,
  });
  return (
    <Panel
      title="Instances"
      asOf={query.dataUpdatedAt}
      description="Hosts and processes that used this application, newest first."
      flush={query.data !== undefined}
    >
      <Async query={query} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No instance has called yet">
              Install the library and <code>pkcs11.toml</code> on the database host, test the connection there with{' '}
              <code>{testConnection}</code>, then open the keystore.
            </EmptyState>
          ) : (
            <InstanceTable caption="Instances" instances={items} />
          )
        }
      </Async>
    </Panel>
  );
};
