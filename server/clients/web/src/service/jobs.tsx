// What the service does by the clock: the last run of each job, how it ended, and the next one.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { Job } from '../api/types.ts';
import { titled } from '../people/role-names.ts';
import { useMay } from '../session/may.ts';
import { Async } from '../ui/page/async.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { ServiceTabs } from './service-tabs.tsx';

const path = '/api/jobs';

const everyOf = ({ everySeconds }: Job): string => {
  if (everySeconds === null) return 'by snapshots.schedule';
  if (everySeconds % 3600 === 0) return everySeconds === 3600 ? 'every hour' : `every ${everySeconds / 3600} hours`;
  if (everySeconds % 60 === 0) return everySeconds === 60 ? 'every minute' : `every ${everySeconds / 60} minutes`;
  return everySeconds === 1 ? 'every second' : `every ${everySeconds} seconds`;
};

const State = ({ job }: { job: Job }) => {
  if (job.failure !== null)
    return (
      <Badge tone="danger" icon="warning">
        Failing
      </Badge>
    );
  if (job.startedAt === null)
    return (
      <Badge tone="quiet" icon="clock">
        {job.here ? 'Not yet run' : 'Runs elsewhere'}
      </Badge>
    );
  return (
    <Badge tone="ok" icon="active">
      {job.running ? 'Running' : 'Succeeded'}
    </Badge>
  );
};

export const JobsPage = () => {
  const may = useMay();
  const query = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => send<{ readonly items: readonly Job[] }>({ method: 'GET', path }, { signal }),
    refetchInterval: 10_000,
  });
  return (
    <Page
      title="Scheduled jobs"
      description="Times are those of this node since it started. One node does each job for all nodes."
    >
      <ServiceTabs />
      <Panel title="Jobs" asOf={query.dataUpdatedAt} flush>
        <Async query={query} inset>
          {({ items }) => (
            <DataTable
              caption="Scheduled jobs"
              rows={items}
              rowKey={({ name }) => name}
              columns={[
                { key: 'name', header: 'Job', names: true, cell: ({ name }) => titled(name) },
                { key: 'state', header: 'State', cell: (job) => <State job={job} /> },
                { key: 'every', header: 'Runs', nowrap: true, cell: everyOf },
                {
                  key: 'last',
                  header: 'Last run',
                  cell: ({ startedAt, durationMs }) => (
                    <span className="flex flex-col">
                      <Time value={startedAt} distance absent="not yet" />
                      {durationMs !== null && (
                        <span className="text-muted">{durationMs.toLocaleString('en-GB')} ms</span>
                      )}
                    </span>
                  ),
                },
                {
                  key: 'next',
                  header: 'Next run',
                  cell: ({ nextAt, here, node }) =>
                    here || nextAt !== null ? (
                      <Time value={nextAt} distance absent="soon" />
                    ) : (
                      <span className="text-muted">known to {node ?? 'no node'}</span>
                    ),
                },
                {
                  key: 'failure',
                  header: 'Failure',
                  cell: ({ failure, succeededAt }) =>
                    failure === null ? (
                      <span className="text-muted">none</span>
                    ) : (
                      <span className="wrap-anywhere">
                        {failure.message}{' '}
                        <span className="text-muted">
                          Since <Time value={failure.since} distance />, last success{' '}
                          <Time value={succeededAt} distance />.
                        </span>
                      </span>
                    ),
                },
                { key: 'node', header: 'Node', cell: ({ node, here }) => (here ? 'This node' : (node ?? 'No node')) },
              ]}
            />
          )}
        </Async>
      </Panel>
      <p className="text-muted">
        What follows an event has no schedule: erasure runs are on{' '}
        <Link to="/settings" className="link">
          Settings
        </Link>
        {may('notifications:read', { platform: true }) && (
          <>
            , messages on{' '}
            <Link to="/notifications/targets" className="link">
              Notification targets
            </Link>
          </>
        )}
        .
      </p>
    </Page>
  );
};
