// The request log, of one endpoint or of all: filtered by the server, followed live, exported, and
// searched for the request of a CloudTrail event. Filters are in the address, so that a view can be
// shared.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { formatTarget, type Query, send } from '../api/client.ts';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type { CorrelatedRequests, Endpoint, EndpointRequest, Status } from '../api/types.ts';
import { useMay } from '../session/may.ts';
import { AreaField, type Choice } from '../ui/fields/field.tsx';
import { FilterBar, MomentFilter, SelectFilter, TextFilter } from '../ui/fields/filters.tsx';
import { Dialog, DialogActions } from '../ui/forms/dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button, buttonClass } from '../ui/page/button.tsx';
import { Copyable, Identifier } from '../ui/page/copy.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { type Column, DataTable, TableSkeleton } from '../ui/table/data-table.tsx';
import { type ListPage, ListView, useList } from '../ui/table/list-view.tsx';
import type { RequestFilters } from './request-filters.ts';

const choices = (...values: readonly string[]): readonly Choice[] => values.map((value) => ({ value, text: value }));
const operations = choices('encrypt', 'decrypt', 'metadata', 'health');
const results: readonly Choice[] = [
  { value: 'answered', text: 'Answered' },
  { value: 'refused', text: 'Refused' },
];
const errorNames = choices(
  'AccessDeniedException',
  'AuthenticationFailedException',
  'ConnectionClosed',
  'DependencyTimeoutException',
  'InternalException',
  'InvalidCiphertextException',
  'InvalidKeyUsageException',
  'InvalidStateException',
  'InvalidUriPathException',
  'KeyNotFoundException',
  'ThrottlingException',
  'UnsupportedOperationException',
  'ValidationException',
);

const endpointChoices = (names: ReadonlyMap<string, string>): readonly Choice[] =>
  [...names].map(([value, text]) => ({ value, text }));

const formatMs = (value: number): string => `${value.toFixed(2)} ms`;

const columns: readonly Column<EndpointRequest>[] = [
  { key: 'at', header: 'Time', nowrap: true, cell: (request) => <Time value={request.at} seconds /> },
  { key: 'operation', header: 'Operation', nowrap: true, cell: (request) => request.operation },
  {
    key: 'result',
    header: 'Result',
    cell: (request) =>
      request.errorName === null ? (
        <Badge tone="ok" icon="active">
          {String(request.status)}
        </Badge>
      ) : (
        <Badge tone="danger" icon="warning">
          {`${request.status} ${request.errorName}`}
        </Badge>
      ),
  },
  {
    key: 'duration',
    header: 'Duration',
    nowrap: true,
    cell: (request) => <span className="tabular-nums">{formatMs(request.durationMs)}</span>,
  },
  {
    key: 'principal',
    header: 'Principal',
    cell: (request) =>
      request.principal === null ? (
        <span className="text-muted">none</span>
      ) : (
        <Identifier value={request.principal} label="principal" />
      ),
  },
];

const orDash = (value: string | null, label: string) =>
  value === null ? '–' : <Copyable key={label} value={value} label={label} />;

const detail = (request: EndpointRequest) => (
  <Facts
    items={[
      ...(request.reason === null ? [] : [['Reason', request.reason] as const]),
      ['Reading', formatMs(request.phases.readMs)],
      ['Authenticating', formatMs(request.phases.authMs)],
      ['Cryptography and response', formatMs(request.phases.cryptoMs)],
      ['Principal', orDash(request.principal, 'principal')],
      ['KMS operation', request.kmsOperation ?? '–'],
      ['KMS request id', orDash(request.kmsRequestId, 'KMS request id')],
      ['KMS key ARN', orDash(request.kmsKeyArn, 'KMS key ARN')],
      ['Source VPC', orDash(request.awsSourceVpc, 'source VPC')],
      ['VPC endpoint', orDash(request.awsSourceVpce, 'VPC endpoint')],
      ['Via service', request.kmsViaService ?? '–'],
      ['External key id', orDash(request.externalKeyId, 'external key id')],
      ['Request id', orDash(request.requestId, 'request id')],
      ['Address', request.peer ?? '–'],
    ]}
  />
);

const table = {
  caption: 'Requests',
  rowKey: (request: EndpointRequest) => String(request.sequence),
  columns,
  detail,
};

/** Names of endpoints by their id; names of deleted endpoints are not known. */
const useEndpointNames = (enabled: boolean): ReadonlyMap<string, string> => {
  const query = useQuery({
    queryKey: [endpointsPath, 'names'],
    queryFn: ({ signal }) =>
      send<ListPage<Endpoint>>({ method: 'GET', path: endpointsPath, query: { limit: 1000 } }, { signal }),
    select: (page) => new Map(page.items.map(({ id, name }) => [id, name])),
    enabled,
  });
  return query.data ?? new Map<string, string>();
};

const endpointColumn = (names: ReadonlyMap<string, string>): Column<EndpointRequest> => ({
  key: 'endpoint',
  header: 'Endpoint',
  cell: ({ endpointId }) => {
    if (endpointId === null) return <span className="text-muted">none</span>;
    const name = names.get(endpointId);
    if (name === undefined) return <span className="wrap-anywhere text-muted">{endpointId}</span>;
    return (
      <Link to="/endpoints/$id" params={{ id: endpointId }} className="link wrap-anywhere">
        {name}
      </Link>
    );
  },
});

const FindDialog = ({ onClose }: { onClose: () => void }) => {
  const [text, setText] = useState('');
  const [found, setFound] = useState<CorrelatedRequests | null>(null);
  if (found === null) {
    return (
      <FormDialog<CorrelatedRequests>
        title="Find the request of a CloudTrail event"
        wide
        call={{ method: 'POST', path: '/api/requests/correlate', body: { text } }}
        submitLabel="Find"
        submitDisabled={text.trim() === ''}
        onCancel={onClose}
        onDone={setFound}
      >
        {(fault) => (
          <AreaField
            label="CloudTrail event"
            value={text}
            onValue={setText}
            fault={fault('text')}
            autoFocus
            help="Paste the event, a part of it, or its requestID. It is not stored."
          />
        )}
      </FormDialog>
    );
  }
  return (
    <Dialog title="Requests of this event" wide onClose={onClose}>
      {found.items.length === 0 ? (
        <Notice tone="info" title="No request with this id">
          <p className="wrap-anywhere">Searched for: {found.kmsRequestIds.join(', ')}.</p>
          {found.oldest === null ? (
            <p>The request log is empty.</p>
          ) : (
            <p>
              The request log begins at <Time value={found.oldest} seconds />. A request that did not reach this service
              is not in it.
            </p>
          )}
        </Notice>
      ) : (
        <DataTable {...table} columns={columns.filter(({ key }) => key !== 'principal')} rows={found.items} />
      )}
      <DialogActions>
        <Button onClick={() => setFound(null)}>Find another</Button>
        <Button tone="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
};

const liveEvery = 2_000;
const liveRows = 50;

/** The newest requests, updated while they are shown. */
const Live = ({ path, filters, table: shown }: { path: string; filters: Query; table: typeof table }) => {
  const newest = useQuery({
    queryKey: [path, 'live', filters],
    queryFn: ({ signal }) =>
      send<ListPage<EndpointRequest>>({ method: 'GET', path, query: { ...filters, limit: liveRows } }, { signal }),
    refetchInterval: liveEvery,
    gcTime: 0,
  });
  return (
    <>
      <p role="status" className="flex items-center gap-2 border-b border-line bg-sunken px-4 py-2 text-xs text-muted">
        <Icon name="clock" className="size-3.5" />
        The newest {liveRows} requests, updated every {liveEvery / 1000} seconds.
      </p>
      {newest.error !== null && (
        <div className="p-4">
          <ProblemView error={newest.error} onRetry={() => void newest.refetch()} compact />
        </div>
      )}
      {newest.data === undefined ? (
        newest.error === null && <TableSkeleton />
      ) : newest.data.items.length === 0 ? (
        <EmptyState title="No requests yet">This page updates automatically.</EmptyState>
      ) : (
        <DataTable {...shown} rows={newest.data.items} />
      )}
    </>
  );
};

/** Warns of missing records until the service that lost them restarts. */
const Dropped = () => {
  const mayRead = useMay()('status:read');
  const status = useQuery({
    queryKey: ['/api/status'],
    queryFn: ({ signal }) => send<Status>({ method: 'GET', path: '/api/status' }, { signal }),
    enabled: mayRead,
  });
  const dropped = status.data?.requestLog.dropped ?? 0;
  if (dropped === 0) return null;
  return (
    <div className="p-4">
      <Notice tone="warn" title={`${dropped} records are missing`}>
        The store did not keep up. Records were dropped since the service started. The requests themselves were
        answered.
      </Notice>
    </div>
  );
};

const ExportLink = ({ path, query, format }: { path: string; query: Query; format: 'csv' | 'ndjson' }) => (
  <a className={buttonClass()} href={formatTarget({ path: `${path}/export`, query: { ...query, format } })} download>
    <Icon name="download" />
    {format.toUpperCase()}
  </a>
);

const Filters = ({
  filters,
  onFilters,
  endpoints,
}: {
  filters: RequestFilters;
  onFilters: (filters: RequestFilters) => void;
  /** Undefined when all requests belong to one endpoint. */
  endpoints: ReadonlyMap<string, string> | undefined;
}) => {
  const set = (change: RequestFilters) => onFilters({ ...filters, ...change });
  return (
    <FilterBar active={isFiltered(filters)} onClear={() => onFilters({})}>
      {endpoints !== undefined && (
        <SelectFilter
          label="Endpoint"
          value={filters.endpointId}
          onValue={(id) => set({ endpointId: id })}
          choices={[{ value: 'none', text: 'None (no endpoint has this path)' }, ...endpointChoices(endpoints)]}
        />
      )}
      <SelectFilter label="Result" value={filters.result} onValue={(result) => set({ result })} choices={results} />
      <SelectFilter
        label="Operation"
        value={filters.operation}
        onValue={(operation) => set({ operation })}
        choices={operations}
      />
      <SelectFilter
        label="Error"
        value={filters.errorName}
        onValue={(errorName) => set({ errorName })}
        choices={errorNames}
      />
      <TextFilter
        label="Principal"
        placeholder="arn:…:role/billing*"
        value={filters.principal}
        onValue={(principal) => set({ principal })}
      />
      <TextFilter
        label="KMS request id"
        value={filters.kmsRequestId}
        onValue={(kmsRequestId) => set({ kmsRequestId })}
      />
      <TextFilter
        label="KMS operation"
        value={filters.kmsOperation}
        onValue={(kmsOperation) => set({ kmsOperation })}
      />
      <TextFilter label="Source VPC" value={filters.awsSourceVpc} onValue={(awsSourceVpc) => set({ awsSourceVpc })} />
      <TextFilter
        label="VPC endpoint"
        value={filters.awsSourceVpce}
        onValue={(awsSourceVpce) => set({ awsSourceVpce })}
      />
      <TextFilter
        label="Via service"
        value={filters.kmsViaService}
        onValue={(kmsViaService) => set({ kmsViaService })}
      />
      <MomentFilter label="From" value={filters.from} onValue={(from) => set({ from })} />
      <MomentFilter label="To" value={filters.to} onValue={(to) => set({ to })} />
    </FilterBar>
  );
};

const isFiltered = (filters: RequestFilters): boolean => Object.values(filters).some((value) => value !== undefined);

export const RequestLog = ({
  endpointId,
  filters,
  onFilters,
}: {
  /** Absent: all endpoints, and requests that belong to none. */
  endpointId?: string;
  filters: RequestFilters;
  /** Receives all filters. */
  onFilters: (filters: RequestFilters) => void;
}) => {
  const [live, setLive] = useState(false);
  const [finding, setFinding] = useState(false);
  const path = endpointId === undefined ? '/api/requests' : `${endpointPath(endpointId)}/requests`;
  const names = useEndpointNames(endpointId === undefined);
  const shown = endpointId === undefined ? { ...table, columns: [endpointColumn(names), ...columns] } : table;
  const query = filters;
  // A log grows continuously: a view that is opened again shows the current records.
  const list = useList<EndpointRequest>(path, query, path, 0);
  return (
    <Panel
      title="Request log"
      description="Requests of the cloud key service, newest first."
      actions={
        <>
          <Button icon="filter" opens onClick={() => setFinding(true)}>
            Paste a CloudTrail event
          </Button>
          <ExportLink path={path} query={query} format="csv" />
          <ExportLink path={path} query={query} format="ndjson" />
          <Button icon={live ? 'pause' : 'clock'} aria-pressed={live} onClick={() => setLive(!live)}>
            {live ? 'Pause' : 'Follow'}
          </Button>
          {!live && (
            <Button icon="refresh" busy={list.isRefetching} onClick={() => void list.refetch()}>
              Refresh
            </Button>
          )}
        </>
      }
      flush
    >
      <Filters filters={filters} onFilters={onFilters} endpoints={endpointId === undefined ? names : undefined} />
      <Dropped />
      {live ? (
        <Live path={path} filters={query} table={shown} />
      ) : (
        <ListView
          {...shown}
          list={list}
          endless
          exports={false}
          filtered={isFiltered(filters)}
          onClearFilters={() => onFilters({})}
          empty={
            <EmptyState title="No requests yet">
              The first request is the health check of the cloud key service, when you connect the external key store.
            </EmptyState>
          }
        />
      )}
      {finding && <FindDialog onClose={() => setFinding(false)} />}
    </Panel>
  );
};
