// The sinks of the audit log and the request log, and how many records each has not received yet.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { AuditSink } from '../api/types.ts';
import { Async } from '../ui/page/async.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { AuditTabs } from './audit-tabs.tsx';

const typeNames: Readonly<Record<AuditSink['type'], string>> = {
  file: 'File',
  syslog: 'Syslog over TLS',
  https: 'HTTPS, JSON',
};

const SinkState = ({ sink }: { sink: AuditSink }) => {
  if (sink.failure !== null)
    return (
      <span className="flex flex-col items-start gap-1">
        <Badge tone="danger" icon="warning">
          Failing
        </Badge>
        <span className="text-xs wrap-anywhere">
          {sink.failure.message}, since <Time value={sink.failure.since} />
        </span>
      </span>
    );
  if (sink.fork !== null)
    return (
      <span className="flex flex-col items-start gap-1">
        <Badge tone="danger" icon="warning">
          Forked
        </Badge>
        <span className="text-xs wrap-anywhere">
          Another history from record {sink.fork.record}, found at <Time value={sink.fork.at} />
        </span>
      </span>
    );
  return sink.lag > 0 ? (
    <Badge tone="warn" icon="clock">
      Catching up
    </Badge>
  ) : (
    <Badge tone="ok" icon="active">
      Up to date
    </Badge>
  );
};

const logNames: Readonly<Record<AuditSink['log'], string>> = { audit: 'Audit log', requests: 'Request log' };

const example = `[[audit.sinks]]
name = "siem"
type = "syslog"
host = "siem.example.com"`;

export const AuditSinksPage = () => {
  const query = useQuery({
    queryKey: ['/api/audit/sinks'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly AuditSink[] }>({ method: 'GET', path: '/api/audit/sinks' }, { signal }),
    refetchInterval: 5_000,
  });
  return (
    <Page
      title="Sinks"
      description="Destinations of the audit log and the request log. Unreachable sinks catch up later."
      crumbs={[{ text: 'Audit log', to: '/audit' }]}
    >
      <AuditTabs />
      <Panel flush={query.data !== undefined}>
        <Async query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="Audit log is local only">
                <p>Add a sink to dke.toml, then restart the service:</p>
                <pre className="mx-auto mt-3 max-w-md overflow-x-auto rounded-md bg-sunken p-3 text-left text-xs text-ink">
                  {example}
                </pre>
              </EmptyState>
            ) : (
              <DataTable
                caption="Sinks"
                rows={items}
                rowKey={({ name }) => name}
                columns={[
                  { key: 'name', header: 'Name', names: true, cell: ({ name }) => name },
                  {
                    key: 'log',
                    header: 'Log',
                    cell: ({ log, endpoints }) => (
                      <span>
                        {logNames[log]}
                        {endpoints.length > 0 && (
                          <span className="block text-xs text-muted">
                            {endpoints.length === 1 ? '1 endpoint' : `${endpoints.length} endpoints`}
                          </span>
                        )}
                      </span>
                    ),
                  },
                  { key: 'state', header: 'State', cell: (sink) => <SinkState sink={sink} /> },
                  {
                    key: 'lag',
                    header: 'Not delivered',
                    nowrap: true,
                    cell: ({ lag }) => (lag === 0 ? 'nothing' : `${lag.toLocaleString('en-GB')} records`),
                  },
                  {
                    key: 'lost',
                    header: 'Lost',
                    nowrap: true,
                    cell: ({ lost }) => (lost === 0 ? 'none' : `${lost.toLocaleString('en-GB')} records`),
                  },
                  {
                    key: 'delivered',
                    header: 'Last delivery',
                    cell: ({ deliveredAt }) => <Time value={deliveredAt} distance />,
                  },
                  {
                    key: 'target',
                    header: 'Destination',
                    cell: ({ type, target }) => (
                      <span>
                        {typeNames[type]} <code className="text-xs break-all">{target}</code>
                      </span>
                    ),
                  },
                ]}
              />
            )
          }
        </Async>
      </Panel>
    </Page>
  );
};
