// The current settings of the service, each with its source, and the state of the process.
// Read-only.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { Settings, Status } from '../api/types.ts';
import { CheckField } from '../ui/fields/field.tsx';
import { Async } from '../ui/page/async.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { Badge, StateBadge } from '../ui/page/state-badge.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { HealthView } from './health.tsx';
import { ServiceTabs } from './service-tabs.tsx';

export const SettingsPage = () => {
  const [givenOnly, setGivenOnly] = useState(false);
  const status = useQuery({
    queryKey: ['/api/status'],
    queryFn: ({ signal }) => send<Status>({ method: 'GET', path: '/api/status' }, { signal }),
    refetchInterval: 15_000,
  });
  const query = useQuery({
    queryKey: ['/api/settings'],
    queryFn: ({ signal }) => send<Settings>({ method: 'GET', path: '/api/settings' }, { signal }),
  });
  return (
    <Page title="Settings" description="Read-only: edit dke.toml and restart the service.">
      <ServiceTabs />
      <Panel
        title="Health"
        asOf={status.dataUpdatedAt}
        actions={status.data !== undefined && <StateBadge state={status.data.health.healthy ? 'ok' : 'fail'} />}
      >
        <Async query={status}>{(data) => <HealthView status={data} />}</Async>
      </Panel>
      <Panel
        title="Settings"
        description={
          query.data === undefined ? undefined : query.data.source === null ? (
            'There is no file: the defaults apply.'
          ) : (
            <>
              From <code className="wrap-anywhere">{query.data.source}</code>
            </>
          )
        }
        actions={<CheckField label="Only settings from the file" checked={givenOnly} onValue={setGivenOnly} />}
        flush={query.data !== undefined}
      >
        <Async query={query} lines={8}>
          {({ items }) => (
            <DataTable
              caption="Settings"
              rows={items.filter(({ origin }) => !givenOnly || origin === 'file')}
              rowKey={({ name }) => name}
              columns={[
                { key: 'name', header: 'Name', names: true, cell: ({ name }) => <code>{name}</code> },
                {
                  key: 'value',
                  header: 'Value',
                  cell: ({ value }) =>
                    value === null ? (
                      <span className="text-muted">not set</span>
                    ) : (
                      <code className="wrap-anywhere">{value}</code>
                    ),
                },
                {
                  key: 'origin',
                  header: 'Source',
                  cell: ({ origin }) =>
                    origin === 'file' ? (
                      <Badge tone="ok" icon="audit">
                        File
                      </Badge>
                    ) : (
                      <Badge tone="quiet" icon="info">
                        Default
                      </Badge>
                    ),
                },
              ]}
            />
          )}
        </Async>
      </Panel>
    </Page>
  );
};
