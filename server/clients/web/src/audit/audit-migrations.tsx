// Key migration: master keys that databases created, each with its uses since then.

import type { KeyMigration } from '../api/types.ts';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { AuditTabs } from './audit-tabs.tsx';

const usesOf = ({ uses, failures }: KeyMigration): string =>
  [
    ...Object.entries(uses).map(([use, count]) => `${use} ${count.toLocaleString('en-GB')}`),
    ...(failures > 0 ? [`${failures.toLocaleString('en-GB')} failed`] : []),
  ].join(', ') || 'none yet';

export const AuditMigrationsPage = () => {
  const list = useList<KeyMigration>('/api/audit/migrations');
  return (
    <Page
      title="Key migration"
      description="Master keys that databases created, and their use since then. The first key of an application shows that a database migrates from a local wallet. Each further key is a rotation."
      crumbs={[{ text: 'Audit log', to: '/audit' }]}
    >
      <AuditTabs />
      <Panel title="New master keys" flush>
        <ListView
          list={list}
          endless
          caption="Key migration"
          rowKey={({ sequence }) => String(sequence)}
          columns={[
            { key: 'at', header: 'Time', names: true, cell: ({ at }) => <Time value={at} seconds /> },
            {
              key: 'what',
              header: 'Event',
              cell: ({ what }) => (
                <Badge tone={what === 'first-key' ? 'ok' : 'quiet'} icon="key">
                  {what === 'first-key' ? 'First key' : 'Further key'}
                </Badge>
              ),
            },
            { key: 'application', header: 'Application', cell: ({ applicationName }) => applicationName },
            {
              key: 'from',
              header: 'Instance',
              cell: ({ process, host }) => (process === null ? (host ?? '–') : `${process} on ${host}`),
            },
            { key: 'uses', header: 'Later uses', cell: usesOf },
          ]}
          detail={({ label, keyId, records }) => (
            <p className="text-xs wrap-anywhere">
              Key {label ?? keyId}; audit records {records.join(', ')}.
            </p>
          )}
          empty={<EmptyState title="No master keys yet">Each database creates its own master keys.</EmptyState>}
        />
      </Panel>
    </Page>
  );
};
