// The newest audit records about one thing, or by one actor, on its own page.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { AuditRecord } from '../api/types.ts';
import { useMay } from '../session/may.ts';
import { Async } from '../ui/page/async.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';
import { auditTable } from './audit-table.tsx';

const mostShown = 10;

export const History = ({
  title,
  of,
}: {
  title: string;
  of: { readonly subjectId: string } | { readonly actorId: string };
}) => {
  const mayRead = useMay()('audit:read', { scoped: false });
  const query = useQuery({
    queryKey: ['/api/audit', 'history', of],
    queryFn: ({ signal }) =>
      send<ListPage<AuditRecord>>(
        { method: 'GET', path: '/api/audit', query: { ...of, limit: mostShown } },
        { signal },
      ),
    enabled: mayRead,
  });
  if (!mayRead) return null;
  return (
    <Panel
      title={title}
      flush
      actions={
        <Link to="/audit" search={of} className="link">
          Open the audit log
        </Link>
      }
    >
      <Async query={query} lines={3} inset>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No records">There is no audit record yet.</EmptyState>
          ) : (
            <DataTable {...auditTable} caption={title} rows={items} />
          )
        }
      </Async>
    </Panel>
  );
};
