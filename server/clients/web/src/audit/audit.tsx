// The audit log: filtered and paged by the server, in the order of its sequence. Filters are in the
// address, so that an auditor can store and send a view. Proofs, checkpoints and sinks have their
// own sections.

import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { AuditRecord } from '../api/types.ts';
import type { Choice } from '../ui/fields/field.tsx';
import { FilterBar, MomentFilter, PickFilter, SelectFilter, TextFilter } from '../ui/fields/filters.tsx';
import { Button } from '../ui/page/button.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { auditKindNames } from './audit-kinds.ts';
import { auditTable } from './audit-table.tsx';
import { AuditTabs } from './audit-tabs.tsx';
import { ProofDialog } from './proof-dialog.tsx';

const route = getRouteApi('/audit');

const path = '/api/audit';

const kinds: readonly Choice[] = Object.entries(auditKindNames)
  .map(([value, text]) => ({ value, text }))
  .sort((a, b) => a.text.localeCompare(b.text));

const severities: readonly Choice[] = [
  { value: 'low', text: 'Low and above' },
  { value: 'medium', text: 'Medium and above' },
  { value: 'high', text: 'High and above' },
  { value: 'critical', text: 'Critical' },
];

export const AuditPage = () => {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [proving, setProving] = useState<AuditRecord | null>(null);
  const list = useList<AuditRecord>(path, filters);
  const filtered = Object.values(filters).some((value) => value !== undefined);
  const setFilter = (change: Partial<typeof filters>) =>
    void navigate({ search: (previous) => ({ ...previous, ...change }), replace: true });
  const clear = () => void navigate({ search: {}, replace: true });
  return (
    <Page
      title="Audit log"
      description="Every change, with its actor and its request. A change and its record are one transaction."
    >
      <AuditTabs />
      <Panel flush>
        <FilterBar active={filtered} onClear={clear}>
          <SelectFilter label="Event" value={filters.kind} onValue={(kind) => setFilter({ kind })} choices={kinds} />
          <SelectFilter
            label="Severity"
            value={filters.severity}
            onValue={(severity) => setFilter({ severity })}
            choices={severities}
          />
          <PickFilter
            label="Subject"
            kind="any"
            value={filters.subjectId}
            onValue={(subjectId) => setFilter({ subjectId })}
          />
          <PickFilter label="Actor" kind="any" value={filters.actorId} onValue={(actorId) => setFilter({ actorId })} />
          <TextFilter label="Request id" value={filters.requestId} onValue={(requestId) => setFilter({ requestId })} />
          <MomentFilter label="From" value={filters.from} onValue={(from) => setFilter({ from })} />
          <MomentFilter label="To" value={filters.to} onValue={(to) => setFilter({ to })} />
        </FilterBar>
        <ListView
          {...auditTable}
          detail={(record) => (
            <div className="space-y-3">
              {auditTable.detail?.(record)}
              <Button icon="check" opens onClick={() => setProving(record)}>
                Prove this record
              </Button>
            </div>
          )}
          list={list}
          endless
          // The log leaves as a file that proves itself, and its taking is recorded: the tab
          // Verification.
          exports={false}
          filtered={filtered}
          onClearFilters={clear}
          empty={<EmptyState title="No records yet">Records appear here after the first change.</EmptyState>}
        />
      </Panel>
      {proving !== null && <ProofDialog record={proving} onClose={() => setProving(null)} />}
    </Page>
  );
};
