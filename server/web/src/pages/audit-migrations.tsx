// Key migration: master keys that databases made, each with the uses that followed.

import type { KeyMigration } from '../api/types.ts';
import { AuditTabs } from '../components/audit-tabs.tsx';
import { ListView, useList } from '../components/list-view.tsx';
import { Page, Panel } from '../components/page.tsx';
import { EmptyState } from '../components/problem-view.tsx';
import { Badge } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';

const usesOf = ({ uses, failures }: KeyMigration): string =>
  [
    ...Object.entries(uses).map(([use, count]) => `${use} ${count.toLocaleString()}`),
    ...(failures > 0 ? [`${failures.toLocaleString()} failed`] : []),
  ].join(', ') || 'none yet';

export const AuditMigrationsPage = () => {
  const list = useList<KeyMigration>('/api/audit/migrations');
  return (
    <Page
      title="Key migration"
      description="A master key that a database made, and what it did with its keys from then on. The first key of an application is how a database comes from a local wallet; each further one is a rotation."
      crumbs={[{ text: 'Audit log', to: '/audit' }]}
    >
      <AuditTabs />
      <Panel title="Master keys made" flush>
        <ListView
          list={list}
          endless
          caption="Key migration"
          rowKey={({ sequence }) => String(sequence)}
          columns={[
            { key: 'at', header: 'When', names: true, cell: ({ at }) => <Time value={at} seconds /> },
            {
              key: 'what',
              header: 'What',
              cell: ({ what }) => (
                <Badge tone={what === 'first-key' ? 'ok' : 'quiet'} icon="key">
                  {what === 'first-key' ? 'First key' : 'Further key'}
                </Badge>
              ),
            },
            { key: 'application', header: 'Application', cell: ({ applicationName }) => applicationName },
            {
              key: 'from',
              header: 'From',
              cell: ({ process, host }) => (process === null ? (host ?? '–') : `${process} on ${host}`),
            },
            { key: 'uses', header: 'Uses that followed', cell: usesOf },
          ]}
          detail={({ label, keyId, records }) => (
            <p className="text-xs wrap-anywhere">
              Key {label ?? keyId}; audit records {records.join(', ')}.
            </p>
          )}
          empty={<EmptyState title="No master key yet">Databases make theirs themselves.</EmptyState>}
        />
      </Panel>
    </Page>
  );
};
