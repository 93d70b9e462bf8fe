// Audit records as rows: time, event, subject and actor. An opened row shows the whole record.

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { AuditRecord } from '../api/types.ts';
import { Actor } from '../people/actor.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { Facts } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';
import type { Column, DataTableProps } from '../ui/table/data-table.tsx';
import { auditKindNames } from './audit-kinds.ts';

/** The pages of things, by their kind. */
const subjectPages = {
  key: '/keys/$id',
  application: '/tde/applications/$id',
  endpoint: '/endpoints/$id',
  token: '/tokens/$id',
  node: '/nodes/$id',
} as const;
const hasPage = (kind: string): kind is keyof typeof subjectPages => Object.hasOwn(subjectPages, kind);

/** The thing a record is about: a link to its page where there is one. */
const Subject = ({ record }: { record: AuditRecord }) => {
  const { subjectKind: kind, subjectId: id, details } = record;
  if (kind === 'service') return <span className="text-muted">the service</span>;
  const text: ReactNode =
    typeof details.name === 'string' ? details.name : <code className="text-xs whitespace-normal">{id}</code>;
  return (
    <span className="wrap-anywhere">
      <span className="text-muted">{kind} </span>
      {hasPage(kind) ? (
        <Link to={subjectPages[kind]} params={{ id }} className="link">
          {text}
        </Link>
      ) : (
        text
      )}
    </span>
  );
};

const formatValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const Detail = ({ record }: { record: AuditRecord }) => (
  <Facts
    items={[
      ['Kind', <code key="kind">{record.kind}</code>],
      ['Sequence', String(record.sequence)],
      [
        'Actor',
        <span key="actor">
          {record.actorKind} <Copyable value={record.actorId} label="actor id" />
        </span>,
      ],
      ...(record.peer === null ? [] : [['Address', <code key="peer">{record.peer}</code>] as const]),
      ['Request', <Copyable key="request" value={record.requestId} label="request id" />],
      ['Subject id', <Copyable key="subject" value={record.subjectId} label="subject id" />],
      ...Object.entries(record.details).map(
        ([name, value]) =>
          [
            name,
            <code key={name} className="wrap-anywhere">
              {formatValue(value)}
            </code>,
          ] as const,
      ),
    ]}
  />
);

const columns: readonly Column<AuditRecord>[] = [
  { key: 'at', header: 'Time', nowrap: true, cell: (record) => <Time value={record.at} seconds /> },
  { key: 'kind', header: 'Event', names: true, nowrap: true, cell: (record) => auditKindNames[record.kind] },
  { key: 'subject', header: 'Subject', cell: (record) => <Subject record={record} /> },
  {
    key: 'actor',
    header: 'Actor',
    cell: ({ actorId, actorName, actorKind }) => (
      <span className="inline-block max-w-44 min-w-36 wrap-anywhere">
        <Actor id={actorId} name={actorName} kind={actorKind} />
      </span>
    ),
  },
];

/** How audit records are shown in every table of them. */
export const auditTable: Omit<DataTableProps<AuditRecord>, 'rows'> = {
  caption: 'Audit records',
  columns,
  rowKey: (record) => String(record.sequence),
  lines: 1,
  detail: (record) => <Detail record={record} />,
};
