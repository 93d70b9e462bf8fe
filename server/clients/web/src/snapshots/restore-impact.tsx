// The result of a restore or its dry run: counts by kind, keys that stay destroyed, what becomes
// active, and who must approve it.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { Approval, SnapshotRestore } from '../api/types.ts';
import { Notice } from '../ui/page/notice.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';

const tables: Readonly<Record<string, string>> = {
  vaults: 'Vaults',
  tde_groups: 'TDE groups',
  tde_applications: 'TDE applications',
  access_guids: 'access_guids',
  instances: 'Instances seen',
  keys: 'Keys',
  key_versions: 'Key versions',
  key_bindings: 'Key bindings',
  tde_objects: 'Token objects',
  endpoints: 'Key store endpoints',
  endpoint_credentials: 'Endpoint credentials',
  external_key_stores: 'External key stores',
};

const count = (value: number) => (
  <span className={`tabular-nums ${value === 0 ? 'text-muted' : 'font-semibold'}`}>
    {value.toLocaleString('en-GB')}
  </span>
);

export const RestoreImpact = ({ found }: { found: SnapshotRestore }) => {
  const rows = Object.entries(found.counts).filter(([, each]) => Object.values(each).some((number) => number > 0));
  return (
    <div className="space-y-5">
      {rows.length === 0 ? (
        <p className="px-4 pt-4">The snapshot is empty: the tenant has no data.</p>
      ) : (
        <DataTable
          caption={found.dryRun ? 'Result of the dry run' : 'Result of the restore'}
          rows={rows}
          rowKey={([table]) => table}
          columns={[
            { key: 'what', header: 'Kind', names: true, cell: ([table]) => tables[table] ?? table },
            {
              key: 'created',
              header: found.dryRun ? 'Would be created' : 'Created',
              cell: ([, each]) => count(each.created),
            },
            {
              key: 'changed',
              header: found.dryRun ? 'Would be changed' : 'Changed',
              cell: ([, each]) => count(each.changed),
            },
            { key: 'unchanged', header: 'Unchanged', cell: ([, each]) => count(each.unchanged) },
            { key: 'kept', header: 'Newer, kept', cell: ([, each]) => count(each.kept) },
            { key: 'omitted', header: 'Omitted', cell: ([, each]) => count(each.omitted) },
          ]}
        />
      )}
      <div className="space-y-5 px-4 pb-4">
        {found.newIds && (
          <Notice tone="info" title="A copy next to the original">
            Another tenant here has these ids, so everything gets new ids. Credentials of the original are left out.
          </Notice>
        )}
        <section className="space-y-2">
          <h3 className="flex flex-wrap items-center gap-2 font-medium">
            Keys that stay destroyed <Badge tone="quiet" icon="destroyed">{`${found.stayDestroyed.length}`}</Badge>
          </h3>
          {found.stayDestroyed.length === 0 ? (
            <p className="text-muted">None. No key of the snapshot was destroyed since.</p>
          ) : (
            <ul className="divide-y divide-line rounded-lg border border-line">
              {found.stayDestroyed.map((each) => (
                <li key={each.id} className="flex flex-wrap items-baseline justify-between gap-x-4 px-3 py-2">
                  <span className="min-w-0">
                    <span className="font-medium wrap-anywhere">{each.name}</span>{' '}
                    <code className="text-xs wrap-anywhere text-muted">{each.id}</code>
                  </span>
                  <span className="text-muted">
                    destroyed <Time value={each.destroyedAt} />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </section>
        {found.withoutValue.length > 0 && (
          <Notice tone="warn" title={`${found.withoutValue.length} values are damaged in the snapshot`}>
            Their objects are copied without a value: {found.withoutValue.map(({ id }) => id).join(', ')}
          </Notice>
        )}
        {found.activated.length > 0 && (
          <Notice
            tone="warn"
            title={`${found.activated.length} items ${found.dryRun ? 'would become' : 'became'} active or change`}
          >
            <ul className="list-disc pl-5">
              {found.activated.map(({ kind, change, id, name }) => (
                <li key={`${kind} ${id}`} className="wrap-anywhere">
                  {kind} {name}: {change}
                </li>
              ))}
            </ul>
          </Notice>
        )}
      </div>
    </div>
  );
};

/** The approvals that dual control requires, and the state of the approval request. */
export const RestoreApproval = ({ snapshotId, found }: { snapshotId: string; found: SnapshotRestore }) => {
  const asked = useQuery({
    queryKey: ['/api/approvals', 'of', snapshotId],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        ['pending', 'approved'].map((state) =>
          send<ListPage<Approval>>(
            { method: 'GET', path: '/api/approvals', query: { state, limit: 1000 } },
            { signal },
          ),
        ),
      );
      return pages
        .flatMap(({ items }) => items)
        .find(({ operation, subject }) => operation === 'snapshot.restore' && subject.id === snapshotId);
    },
    // A user without permission to see approvals gets this from the answer to the restore.
    enabled: found.rules.length > 0,
    retry: false,
  });
  if (found.rules.length === 0)
    return (
      <Notice tone="info" title="No approval required">
        The restore starts when you confirm it.
      </Notice>
    );
  const open = asked.data;
  return (
    <Notice
      tone={open?.state === 'approved' ? 'info' : 'warn'}
      title={
        open?.state === 'approved'
          ? 'Approved'
          : open?.state === 'pending'
            ? `Requested: ${open.missing} more must approve`
            : 'Approval required'
      }
    >
      <ul className="list-disc pl-5">
        {found.rules.map((rule) => (
          <li key={rule.vaultId}>
            {rule.vaultName}: {rule.required} in addition to you
            {rule.approvers !== null && `, of ${rule.approvers.length} eligible`}
          </li>
        ))}
      </ul>
      <p className="mt-1">
        {open?.state === 'approved'
          ? 'Confirm it again to restore with your recovery key.'
          : 'Confirm to request approval. After the approval, return to this page and confirm again with your recovery key.'}{' '}
        <Link to="/approvals" className="link">
          Approvals
        </Link>
      </p>
    </Notice>
  );
};
