// The inbox: what needs action before it causes harm, most urgent first. A user acknowledges or
// releases a notification; it is resolved when its cause has ended.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type ApiCall, send } from '../api/client.ts';
import { notificationsPath } from '../api/paths.ts';
import type { Notification } from '../api/types.ts';
import type { Choice } from '../ui/fields/field.tsx';
import { FilterBar, SelectFilter } from '../ui/fields/filters.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Button } from '../ui/page/button.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { BulkActions, type RowsAction } from '../ui/table/bulk-actions.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { notificationKindNames } from './notification-kinds.ts';
import { ActionLink, Harm, NotificationText, SeverityBadge } from './notification-list.tsx';
import { NotificationTabs } from './notification-tabs.tsx';

const route = getRouteApi('/notifications');

const kinds: readonly Choice[] = Object.entries(notificationKindNames)
  .map(([value, text]) => ({ value, text }))
  .sort((a, b) => a.text.localeCompare(b.text));
const severities: readonly Choice[] = [
  { value: 'critical', text: 'Critical' },
  { value: 'high', text: 'High and above' },
  { value: 'medium', text: 'Medium and above' },
  { value: 'low', text: 'Low and above' },
];
const care: readonly Choice[] = [
  { value: 'false', text: 'Not acknowledged' },
  { value: 'true', text: 'Acknowledged' },
];

/** Acknowledges a notification, or withdraws the acknowledgement. */
const careCall = ({ id, acknowledgedAt }: Notification): ApiCall => ({
  method: acknowledgedAt === null ? 'POST' : 'DELETE',
  path: `${notificationsPath}/${encodeURIComponent(id)}/acknowledge`,
});

const nameOf = ({ text }: Notification): string => text;
const acknowledge: RowsAction<Notification> = {
  ...{ verb: 'Acknowledge', needs: 'notifications:acknowledge' },
  text: 'Acknowledge notifications to show that you are working on them. They stay open until their cause is gone.',
  callOf: ({ id }) => ({ method: 'POST', path: `${notificationsPath}/${encodeURIComponent(id)}/acknowledge` }),
};

const Care = ({ notification }: { notification: Notification }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const acknowledged = notification.acknowledgedAt !== null;
  const change = useMutation({
    mutationFn: () => send<Notification>(careCall(notification)),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: [notificationsPath] });
      announce(acknowledged ? 'Released' : 'Acknowledged');
    },
  });
  return (
    <>
      <Button
        needs="notifications:acknowledge"
        icon={acknowledged ? 'refresh' : 'check'}
        busy={change.isPending}
        aria-label={`${acknowledged ? 'Release' : 'Acknowledge'}: ${notification.text}`}
        onClick={() => change.mutate()}
      >
        {acknowledged ? 'Release' : 'Acknowledge'}
      </Button>
      {change.error !== null && <ProblemView error={change.error} compact />}
    </>
  );
};

const Detail = ({ notification }: { notification: Notification }) => (
  <div className="space-y-3">
    <Facts
      items={[
        ['About', `${notification.subject.kind} ${notification.subject.name}`],
        ['Act by', <Time key="harm" value={notification.harmAt} seconds />],
        ['Raised', <Time key="raised" value={notification.raisedAt} seconds />],
        ...(notification.acknowledgedAt === null
          ? []
          : [['Acknowledged', <Time key="acknowledged" value={notification.acknowledgedAt} seconds />] as const]),
        ...Object.entries(notification.details).map(([name, value]) => [name, String(value ?? '–')] as const),
        [
          'Id',
          <code key="id" className="break-all">
            {notification.id}
          </code>,
        ],
      ]}
    />
    {notification.resolvedAt === null && <ApiCallView call={careCall(notification)} />}
  </div>
);

export const NotificationsPage = () => {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Notification>(notificationsPath, filters);
  const filtered = Object.values(filters).some((value) => value !== undefined);
  const setFilter = (change: Partial<typeof filters>) =>
    void navigate({ search: (previous) => ({ ...previous, ...change }), replace: true });
  const clear = () => void navigate({ search: {}, replace: true });
  const over = filters.state === 'resolved';
  return (
    <Page
      title="Notifications"
      description="Notifications that need action, most urgent first. Each is resolved when its cause is gone. Acknowledge one to show that you are working on it."
    >
      <NotificationTabs />
      <Panel flush>
        <FilterBar active={filtered} onClear={clear}>
          <SelectFilter
            label="State"
            every="Open"
            value={filters.state}
            onValue={(state) => setFilter({ state })}
            choices={[{ value: 'resolved', text: 'Resolved, last 90 days' }]}
          />
          <SelectFilter
            label="Acknowledgement"
            value={filters.acknowledged}
            onValue={(acknowledged) => setFilter({ acknowledged })}
            choices={care}
          />
          <SelectFilter
            label="Severity"
            value={filters.minSeverity}
            onValue={(minSeverity) => setFilter({ minSeverity })}
            choices={severities}
          />
          <SelectFilter label="Kind" value={filters.kind} onValue={(kind) => setFilter({ kind })} choices={kinds} />
        </FilterBar>
        <ListView
          list={list}
          endless
          caption="Notifications"
          rowKey={({ id }) => id}
          nameOf={nameOf}
          {...(over
            ? {}
            : {
                bulk: (rows: readonly Notification[], onDone: () => void) => (
                  <BulkActions
                    rows={rows}
                    actions={[acknowledge]}
                    nouns={['notification', 'notifications']}
                    nameOf={nameOf}
                    renews={[notificationsPath]}
                    onDone={onDone}
                  />
                ),
              })}
          filtered={filtered}
          onClearFilters={clear}
          empty={
            <EmptyState title="No notifications">
              Certificates, rotations, endpoints, key stores, nodes, sinks, snapshots and tokens are checked every
              minute. Set the targets of notifications in dke.toml.
            </EmptyState>
          }
          columns={[
            { key: 'severity', header: 'Severity', cell: ({ severity }) => <SeverityBadge severity={severity} /> },
            {
              key: 'what',
              header: 'Notification',
              names: true,
              cell: (notification) => <NotificationText notification={notification} />,
            },
            over
              ? { key: 'over', header: 'Resolved', cell: ({ resolvedAt }) => <Time value={resolvedAt} distance /> }
              : { key: 'harm', header: 'Act by', nowrap: true, cell: ({ harmAt }) => <Harm harmAt={harmAt} /> },
            {
              key: 'care',
              header: 'Acknowledged by',
              cell: ({ acknowledgedBy }) =>
                acknowledgedBy ?? <span className="text-muted">{over ? 'none' : 'not yet'}</span>,
            },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (notification) => (
                <div className="flex flex-wrap gap-2 md:justify-end">
                  <ActionLink page={notification.page} action={notification.action} />
                  {notification.resolvedAt === null && <Care notification={notification} />}
                </div>
              ),
            },
          ]}
          detail={(notification) => <Detail notification={notification} />}
        />
      </Panel>
    </Page>
  );
};
