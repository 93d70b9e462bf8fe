// Where notifications are sent, whether they arrive, and a test of each target.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { NotificationTarget } from '../api/types.ts';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { NotificationTabs } from './notification-tabs.tsx';

const path = '/api/notifications/targets';
const testCall = { method: 'POST', path: '/api/notifications/test' } as const;

interface Tried {
  readonly items: readonly { readonly name: string; readonly failure: string | null }[];
}

const Results = ({ tried: { items } }: { tried: Tried }) => {
  const failed = items.filter(({ failure }) => failure !== null);
  return (
    <Notice
      tone={failed.length > 0 ? 'danger' : 'info'}
      title={
        failed.length > 0
          ? `${failed.length} of ${items.length} targets did not accept the test`
          : `The test was sent to ${items.length} ${items.length === 1 ? 'target' : 'targets'}`
      }
    >
      <ul className="list-disc pl-5">
        {items.map(({ name, failure }) => (
          <li key={name} className="wrap-anywhere">
            {name}: {failure ?? 'accepted'}
          </li>
        ))}
      </ul>
      {failed.length === 0 && 'Check that it has arrived: a target can accept a message and lose it.'}
    </Notice>
  );
};

export const NotificationTargetsPage = () => {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly NotificationTarget[] }>({ method: 'GET', path }, { signal }),
    refetchInterval: 30_000,
  });
  const test = useMutation({
    mutationFn: () => send<Tried>(testCall),
    onSettled: () => client.invalidateQueries({ queryKey: [path] }),
  });
  const hasTargets = (query.data?.items.length ?? 0) > 0;
  return (
    <Page
      title="Notification targets"
      description="The service sends each notification to these targets. Read-only: edit dke.toml and restart the service."
      actions={
        hasTargets && (
          <Button
            needs="notifications:acknowledge"
            creates
            icon="bell"
            busy={test.isPending}
            onClick={() => test.mutate()}
          >
            Send a test
          </Button>
        )
      }
    >
      <NotificationTabs />
      <div role="status">{test.data !== undefined && <Results tried={test.data} />}</div>
      {test.error !== null && <ProblemView error={test.error} compact />}
      <Panel title="Targets" asOf={query.dataUpdatedAt} flush>
        <Async query={query} inset>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState title="No notification targets">
                Notifications are shown only here and by <code>dke notification list</code>. Add{' '}
                <code>[[notifications.targets]]</code> to dke.toml for a webhook or e-mail.
              </EmptyState>
            ) : (
              <DataTable
                caption="Notification targets"
                rows={items}
                rowKey={({ name }) => name}
                columns={[
                  { key: 'name', header: 'Name', names: true, cell: ({ name }) => name },
                  { key: 'type', header: 'Type', cell: ({ type }) => (type === 'email' ? 'E-mail' : 'Webhook') },
                  {
                    key: 'target',
                    header: 'Address',
                    cell: ({ target }) => <code className="wrap-anywhere">{target}</code>,
                  },
                  {
                    key: 'state',
                    header: 'State',
                    cell: ({ failure, deliveredAt }) =>
                      failure === null ? (
                        <Badge
                          tone={deliveredAt === null ? 'quiet' : 'ok'}
                          icon={deliveredAt === null ? 'clock' : 'active'}
                        >
                          {deliveredAt === null ? 'Nothing sent yet' : 'Delivering'}
                        </Badge>
                      ) : (
                        <span className="space-y-1">
                          <Badge tone="danger" icon="warning">
                            Failing
                          </Badge>
                          <span className="block wrap-anywhere text-muted">
                            {failure.message} Since <Time value={failure.since} distance />.
                          </span>
                        </span>
                      ),
                  },
                  { key: 'waiting', header: 'Waiting', cell: ({ waiting }) => waiting.toLocaleString('en-GB') },
                  {
                    key: 'delivered',
                    header: 'Last delivery',
                    cell: ({ deliveredAt }) => <Time value={deliveredAt} distance />,
                  },
                ]}
              />
            )
          }
        </Async>
      </Panel>
      {hasTargets && <ApiCallView call={testCall} />}
    </Page>
  );
};
