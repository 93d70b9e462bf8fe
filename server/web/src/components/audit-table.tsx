// Audit records as rows: when, what, who, on which thing, with the recorded details on demand.

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { AuditRecord } from '../api/types.ts';
import { auditKindNames } from './audit-kinds.ts';
import type { Column } from './data-table.tsx';
import { Icon } from './icon.tsx';
import { Time } from './time.tsx';

/** The thing a record is about: a link to its page where there is one. */
const Subject = ({ record }: { record: AuditRecord }) => {
  const { subjectKind, subjectId } = record;
  const name = typeof record.details.name === 'string' ? record.details.name : null;
  const text: ReactNode = name ?? <code className="text-xs break-all">{subjectId}</code>;
  const page = {
    key: '/keys/$id',
    application: '/tde/applications/$id',
    endpoint: '/endpoints/$id',
  } as const;
  return (
    <span className="break-words">
      <span className="text-muted">{subjectKind} </span>
      {subjectKind === 'key' || subjectKind === 'application' || subjectKind === 'endpoint' ? (
        <Link to={page[subjectKind]} params={{ id: subjectId }} className="link">
          {text}
        </Link>
      ) : (
        text
      )}
    </span>
  );
};

const formatValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const Details = ({ record }: { record: AuditRecord }) => (
  <details className="group">
    <summary className="inline-flex min-h-7 list-none items-center gap-1 rounded text-xs text-muted hover:text-ink [&::-webkit-details-marker]:hidden">
      <Icon name="chevron" className="size-3.5 transition-transform group-open:rotate-90" />
      Details
    </summary>
    <dl className="mt-1 mb-1 grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-xs">
      {[
        ['sequence', record.sequence] as const,
        ...Object.entries(record.details),
        ['actor id', record.actorId] as const,
        ...(record.peer === null ? [] : [['address', record.peer] as const]),
        ['request', record.requestId] as const,
      ].map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="break-all">
            <code>{formatValue(value)}</code>
          </dd>
        </div>
      ))}
    </dl>
  </details>
);

export const auditColumns: readonly Column<AuditRecord>[] = [
  { key: 'at', header: 'Time', cell: (record) => <Time value={record.at} seconds /> },
  {
    key: 'kind',
    header: 'Event',
    names: true,
    cell: (record) => <span title={record.kind}>{auditKindNames[record.kind]}</span>,
  },
  { key: 'subject', header: 'On', cell: (record) => <Subject record={record} /> },
  {
    key: 'actor',
    header: 'By',
    cell: (record) => (
      <span className="break-words">
        {record.actorName}
        {record.actorKind !== record.actorName && <span className="text-muted"> ({record.actorKind})</span>}
      </span>
    ),
  },
  { key: 'details', header: 'Details', cell: (record) => <Details record={record} /> },
];
