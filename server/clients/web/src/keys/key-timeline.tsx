// What has happened to a key, oldest first: from the audit log for those who may read it, otherwise
// from the key and its versions.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { keyPath, keysPath } from '../api/paths.ts';
import type { AuditKind, AuditRecord, Key, KeyVersion } from '../api/types.ts';
import { auditKindNames } from '../audit/audit-kinds.ts';
import { useMay } from '../session/may.ts';
import { Async } from '../ui/page/async.tsx';
import { Icon, type IconName } from '../ui/page/icon.tsx';
import { Panel } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';

interface Moment {
  readonly at: string;
  readonly what: string;
  readonly icon: IconName;
  readonly by?: string;
  readonly tone?: 'danger';
}

/** Kinds that say what became of the key; its uses are in the log and in “Usage”. */
const shown: Partial<Readonly<Record<AuditKind, IconName>>> = {
  'key.created': 'plus',
  'key.changed': 'gear',
  'key.enabled': 'active',
  'key.disabled': 'pause',
  'key.rotated': 'refresh',
  'key.deleted': 'trash',
  'key.reimported': 'refresh',
  'key.exported': 'download',
  'key.repaired': 'gear',
  'key.decryption-ended': 'blocked',
  'key.decryption-allowed': 'active',
  'key.destroyed': 'destroyed',
  'key.unrecoverable': 'destroyed',
};
const dangerous: ReadonlySet<AuditKind> = new Set(['key.destroyed', 'key.unrecoverable', 'key.exported']);
const mostRead = 500;

/** What the key itself says; kinds of audit records that say the same go before it. */
export const momentsOf = (
  key: Key,
  versions: readonly KeyVersion[],
  records: readonly Pick<AuditRecord, 'at' | 'kind' | 'actorName' | 'details'>[],
): readonly Moment[] => {
  const told = new Set(records.map(({ kind }) => kind));
  const fact = (
    at: string | null,
    kind: AuditKind | null,
    what: string,
    icon: IconName,
    tone?: 'danger',
  ): readonly Moment[] =>
    at === null || (kind !== null && told.has(kind))
      ? []
      : [{ at, what, icon, ...(tone === undefined ? {} : { tone }) }];
  const moments = [
    ...records.flatMap(({ at, kind, actorName, details }): readonly Moment[] => {
      const icon = shown[kind];
      if (icon === undefined) return [];
      const version =
        kind === 'key.rotated' && typeof details.version === 'number' ? `: version ${details.version}` : '';
      const tone = dangerous.has(kind) ? ({ tone: 'danger' } as const) : {};
      return [{ at, what: `${auditKindNames[kind]}${version}`, icon, by: actorName, ...tone }];
    }),
    ...fact(key.createdAt, 'key.created', 'Key created', 'plus'),
    ...versions
      .filter(({ version }) => version > 1)
      .flatMap(({ version, createdAt }) =>
        fact(createdAt, 'key.rotated', `Key rotated: version ${version}`, 'refresh'),
      ),
    ...fact(key.firstUsedAt, null, 'First used', 'pulse'),
    ...fact(key.lastUsedAt === key.firstUsedAt ? null : key.lastUsedAt, null, 'Last used', 'pulse'),
    ...fact(key.disabledAt, 'key.disabled', 'Key disabled', 'pause'),
    ...fact(key.deletedAt, 'key.deleted', 'Key soft-deleted', 'trash'),
    ...fact(key.reimportedAt, 'key.reimported', 'Key imported again', 'refresh'),
    ...fact(key.destroyedAt, 'key.destroyed', 'Key destroyed', 'destroyed', 'danger'),
    ...fact(key.unrecoverableAt, 'key.unrecoverable', 'Key unrecoverable', 'destroyed', 'danger'),
  ];
  return moments.toSorted((a, b) => a.at.localeCompare(b.at));
};

export const KeyTimeline = ({ value: key }: { value: Key }) => {
  const mayRead = useMay()('audit:read');
  const versions = useQuery({
    queryKey: [keysPath, key.id, 'versions'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly KeyVersion[] }>(
        { method: 'GET', path: `${keyPath(key.id)}/versions` },
        { signal },
      ),
  });
  const records = useQuery({
    queryKey: [keysPath, key.id, 'timeline'],
    queryFn: ({ signal }) =>
      send<ListPage<AuditRecord>>(
        { method: 'GET', path: '/api/audit', query: { subjectId: key.id, limit: mostRead } },
        { signal },
      ),
    enabled: mayRead,
  });
  return (
    <Panel
      title="Timeline"
      description={mayRead ? undefined : 'From the key itself: your roles do not show the audit log.'}
    >
      <Async query={versions}>
        {({ items }) => (
          <>
            <ol className="space-y-0">
              {momentsOf(key, items, records.data?.items ?? []).map(({ at, what, icon, by, tone }, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two records can be the same to the millisecond
                <li key={`${at} ${what} ${index}`} className="flex gap-3 border-l-2 border-line py-1.5 pl-3">
                  <Icon
                    name={icon}
                    className={`mt-0.5 size-4 shrink-0 ${tone === 'danger' ? 'text-danger' : 'text-muted'}`}
                  />
                  <span className="flex min-w-0 flex-wrap gap-x-3">
                    <span className="w-44">
                      <Time value={at} seconds />
                    </span>
                    <span className={tone === 'danger' ? 'font-semibold text-danger' : 'font-medium'}>{what}</span>
                    {by !== undefined && <span className="text-muted wrap-anywhere">by {by}</span>}
                  </span>
                </li>
              ))}
            </ol>
            {records.data?.next != null && (
              <p className="mt-3 text-muted">
                From the newest {mostRead} records.{' '}
                <Link to="/audit" search={{ subjectId: key.id }} className="link">
                  All are in the audit log
                </Link>
                .
              </p>
            )}
          </>
        )}
      </Async>
    </Panel>
  );
};
