// The inventory of keys as a file: the service writes it while it reads, and records who took it
// with which filter.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { formatTarget, type Query, send } from '../api/client.ts';
import { keysPath } from '../api/paths.ts';
import type { AuditRecord, Key } from '../api/types.ts';
import { auditTable } from '../audit/audit-table.tsx';
import { useMay, useTenant } from '../session/may.ts';
import type { Choice } from '../ui/fields/field.tsx';
import { FilterBar, MomentFilter, PickFilter, SelectFilter, TextFilter } from '../ui/fields/filters.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { Async } from '../ui/page/async.tsx';
import { buttonClass } from '../ui/page/button.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';
import { keyKinds, keyStates } from './key-filters.ts';

const route = getRouteApi('/keys/export');
const path = `${keysPath}/export`;
const kind = 'key-inventory.exported';
const mostShown = 10;

interface Counted extends ListPage<Key> {
  readonly total?: number;
}

const formats: readonly Choice[] = [
  { value: 'csv', text: 'CSV, for a spreadsheet' },
  { value: 'ndjson', text: 'NDJSON, one object a line' },
];

/** How many keys the file will contain. */
const Count = ({ filters }: { filters: Query }) => {
  const query = useQuery({
    queryKey: [keysPath, 'counted', filters],
    queryFn: ({ signal }) =>
      send<Counted>({ method: 'GET', path: keysPath, query: { ...filters, limit: 1 } }, { signal }),
  });
  return (
    <Async query={query} lines={1}>
      {({ items, next, total }) => (
        <p role="status">
          {next !== null && total === undefined
            ? 'More than 200,000 keys match.'
            : `Keys that match: ${(total ?? items.length).toLocaleString('en-GB')}.`}
        </p>
      )}
    </Async>
  );
};

const EarlierExports = () => {
  const query = useQuery({
    queryKey: ['/api/audit', 'exports of the inventory'],
    queryFn: ({ signal }) =>
      send<ListPage<AuditRecord>>({ method: 'GET', path: '/api/audit', query: { kind, limit: mostShown } }, { signal }),
    staleTime: 0,
    refetchOnWindowFocus: true,
  });
  return (
    <Panel
      title="Recent exports"
      flush
      actions={
        <Link to="/audit" search={{ kind }} className="link">
          Open the audit log
        </Link>
      }
    >
      <Async query={query} lines={3} inset>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No exports yet">Each export is recorded here with its filter.</EmptyState>
          ) : (
            <DataTable {...auditTable} caption="Recent exports" rows={items} />
          )
        }
      </Async>
    </Panel>
  );
};

export const InventoryPage = () => {
  const { format = 'csv', tenants, ...filters } = route.useSearch();
  const tenant = useTenant();
  const navigate = route.useNavigate();
  const may = useMay();
  const setFilter = (
    change: Partial<typeof filters> & { readonly [name in 'format' | 'tenants']?: string | undefined },
  ) => void navigate({ search: (previous) => ({ ...previous, ...change }), replace: true });
  const reach = { tenant: tenants === 'all' ? '' : tenant };
  const call = { method: 'GET', path, query: { ...reach, ...filters, format } } as const;
  return (
    <Page
      title="Inventory of keys"
      description="All keys that you may see, of every kind and state, as one file. It contains names, states, times and uses, and no key material."
      crumbs={[{ text: 'Keys', to: '/keys' }]}
    >
      <Panel flush>
        <FilterBar
          active={tenants !== undefined || Object.keys(filters).length > 0}
          onClear={() => void navigate({ search: { format }, replace: true })}
        >
          <SelectFilter
            label="Kind"
            value={filters.kind}
            onValue={(next) => setFilter({ kind: next })}
            choices={keyKinds}
          />
          <SelectFilter
            label="State"
            value={filters.state}
            onValue={(state) => setFilter({ state })}
            choices={keyStates}
          />
          <PickFilter
            label="Vault"
            value={filters.vaultId}
            kind="vault"
            onValue={(vaultId) => setFilter({ vaultId })}
          />
          {may('keys:read', { platform: true }) && (
            <SelectFilter
              label="Tenants"
              value={tenants}
              every="This tenant"
              choices={[{ value: 'all', text: 'All tenants' }]}
              onValue={(next) => setFilter({ tenants: next })}
            />
          )}
          <TextFilter label="Tag" value={filters.tag} onValue={(tag) => setFilter({ tag })} />
          <MomentFilter
            label="Created from"
            value={filters.createdAfter}
            onValue={(createdAfter) => setFilter({ createdAfter })}
          />
          <MomentFilter
            label="Created before"
            value={filters.createdBefore}
            onValue={(createdBefore) => setFilter({ createdBefore })}
          />
        </FilterBar>
        <div className="space-y-4 p-4">
          {tenants === 'all' ? <p>The keys of all tenants.</p> : <Count filters={filters} />}
          <div className="flex flex-wrap items-end gap-3">
            <div className="w-72 max-w-full">
              <SelectFilter
                label="Format"
                value={format}
                every="CSV, for a spreadsheet"
                choices={formats.filter(({ value }) => value !== 'csv')}
                onValue={(next) => setFilter({ format: next })}
              />
            </div>
            <a href={formatTarget(call)} download className={buttonClass('primary')}>
              <Icon name="download" />
              Download inventory
            </a>
          </div>
          <p className="text-muted">The audit log records the export with its filter and your name.</p>
          <ApiCallView call={call} />
        </div>
      </Panel>
      {may('audit:read', { scoped: false }) && <EarlierExports />}
    </Page>
  );
};
