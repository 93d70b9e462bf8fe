// Tenants: everything belongs to one. If it is suspended or deleted, everything in it stops at
// once; a deleted one can be restored until it is purged.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { ChangedTenant, Tenant, TenantImpact } from '../api/types.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { CreateDialog } from '../ui/forms/create-dialog.tsx';
import { RenameDialog } from '../ui/forms/rename-dialog.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { ActionMenu, type MenuAction } from '../ui/page/menu.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { type Column, DataTable } from '../ui/table/data-table.tsx';

const path = '/api/tenants';
const tenantPath = (id: string): string => `${path}/${encodeURIComponent(id)}`;

const ImpactView = ({ impact }: { impact: TenantImpact }) => {
  const parts = [
    [impact.endpoints, 'key store endpoints'],
    [impact.applications, 'databases'],
    [impact.tokens, 'API tokens'],
    [impact.keys, 'keys'],
    [impact.vaults, 'vaults'],
    [impact.copies, 'exported snapshots and backups'],
  ] as const;
  return (
    <dl className="grid grid-cols-3 gap-3 rounded-lg border border-line p-3 sm:grid-cols-6">
      {parts.map(([count, name]) => (
        <div key={name}>
          <dd className="text-lg font-semibold tabular-nums">{count.toLocaleString('en-GB')}</dd>
          <dt className="text-xs text-muted">{name}</dt>
        </div>
      ))}
    </dl>
  );
};

type Stop = 'suspend' | 'delete' | 'purge';
const texts: Readonly<
  Record<Stop, { readonly title: string; readonly text: string; readonly label: string; readonly done: string }>
> = {
  suspend: {
    title: 'Suspend',
    label: 'Suspend tenant',
    done: 'suspended',
    text: 'Its key store endpoints, databases and API tokens stop at once, until you resume it. No key is lost.',
  },
  delete: {
    title: 'Delete',
    label: 'Delete tenant',
    done: 'deleted',
    text: 'Everything in it stops at once. For a limited time, you can restore it as it was. Then it is purged.',
  },
  purge: {
    title: 'Purge',
    label: 'Purge tenant',
    done: 'purged',
    text: 'Its key encryption key is erased. Data encrypted by any of its keys can never be read again.',
  },
};

/** Reads the impact with a dry run first; only a shown impact can be confirmed. */
const StopDialog = ({ tenant, stop, onClose }: { tenant: Tenant; stop: Stop; onClose: () => void }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const own = tenantPath(tenant.id);
  const call =
    stop === 'delete'
      ? ({ method: 'DELETE', path: own } as const)
      : ({ method: 'POST', path: `${own}/${stop}`, body: stop === 'purge' ? { confirm: tenant.name } : {} } as const);
  const plan = useQuery({
    queryKey: [path, tenant.id, stop, 'plan'],
    queryFn: () => send<ChangedTenant>({ ...call, query: { dryRun: true } }),
    staleTime: 0,
    gcTime: 0,
  });
  const { title, text, label, done } = texts[stop];
  return (
    <ConfirmDialog<ChangedTenant>
      title={`${title} “${tenant.name}”?`}
      expected={tenant.name}
      expectedKind="name of the tenant"
      ready={plan.data !== undefined}
      wide
      call={call}
      submitLabel={label}
      onCancel={onClose}
      onDone={async () => {
        await client.invalidateQueries();
        announce(`Tenant “${tenant.name}” ${done}`);
        onClose();
      }}
    >
      {stop === 'purge' ? (
        <Notice tone="danger" title="This cannot be undone">
          {text}
        </Notice>
      ) : (
        <p>{text}</p>
      )}
      <Async query={plan} lines={2}>
        {({ impact }) => <ImpactView impact={impact} />}
      </Async>
    </ConfirmDialog>
  );
};

type Reactivation = 'resume' | 'restore';

const ReactivateDialog = ({ tenant, verb, onClose }: { tenant: Tenant; verb: Reactivation; onClose: () => void }) => {
  const title = verb === 'resume' ? 'Resume' : 'Restore';
  return (
    <ActionDialog
      title={`${title} “${tenant.name}”?`}
      call={{ method: 'POST', path: `${tenantPath(tenant.id)}/${verb}`, body: {} }}
      submitLabel={`${title} tenant`}
      renews={[path]}
      done={`Tenant “${tenant.name}” is active again`}
      onClose={onClose}
    >
      <p>Everything is as it was before. Disabled resources stay disabled, and destroyed keys stay destroyed.</p>
    </ActionDialog>
  );
};

/** The dialog that is open. */
type Asked =
  | { readonly kind: 'create' }
  | { readonly kind: 'rename'; readonly tenant: Tenant }
  | { readonly kind: 'stop'; readonly tenant: Tenant; readonly stop: Stop }
  | { readonly kind: 'reactivate'; readonly tenant: Tenant; readonly verb: Reactivation };

const actionsOf = (tenant: Tenant, ask: (asked: Asked) => void): readonly MenuAction[] => {
  const stop = (text: string, icon: MenuAction['icon'], kind: Stop): MenuAction => ({
    text,
    needs: 'tenants:manage',
    icon,
    danger: kind !== 'suspend',
    onSelect: () => ask({ kind: 'stop', tenant, stop: kind }),
  });
  const reactivate = (text: string, icon: MenuAction['icon'], verb: Reactivation): MenuAction => ({
    text,
    needs: 'tenants:manage',
    icon,
    onSelect: () => ask({ kind: 'reactivate', tenant, verb }),
  });
  const rename: MenuAction = {
    ...{ text: 'Rename', needs: 'tenants:manage', icon: 'gear' },
    onSelect: () => ask({ kind: 'rename', tenant }),
  };
  switch (tenant.state) {
    case 'active':
      return [rename, stop('Suspend', 'pause', 'suspend'), stop('Delete', 'trash', 'delete')];
    case 'suspended':
      return [rename, reactivate('Resume', 'active', 'resume'), stop('Delete', 'trash', 'delete')];
    case 'deleted':
      return [reactivate('Restore', 'refresh', 'restore'), stop('Purge', 'destroyed', 'purge')];
    default:
      return [];
  }
};

const PurgeTime = ({ tenant: { purgedAt, purgeAt } }: { tenant: Tenant }) => {
  if (purgedAt !== null) return <Time value={purgedAt} />;
  return purgeAt === null ? <span className="text-muted">–</span> : <Time value={purgeAt} distance />;
};

const columns = (ask: (asked: Asked) => void): readonly Column<Tenant>[] => [
  { key: 'name', header: 'Name', names: true, cell: (tenant) => tenant.name },
  {
    key: 'state',
    header: 'State',
    cell: (tenant) => <StateBadge state={tenant.state} integrity={tenant.integrity} />,
  },
  { key: 'created', header: 'Created', cell: (tenant) => <Time value={tenant.createdAt} /> },
  { key: 'purge', header: 'Purged', cell: (tenant) => <PurgeTime tenant={tenant} /> },
  { key: 'id', header: 'Id', cell: ({ id }) => <code className="text-xs break-all">{id}</code> },
  {
    key: 'actions',
    header: 'Actions',
    end: true,
    actions: true,
    cell: (tenant) => <ActionMenu label={`Actions on tenant ${tenant.name}`} actions={actionsOf(tenant, ask)} />,
  },
];

export const TenantsPage = () => {
  const query = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => send<{ readonly items: readonly Tenant[] }>({ method: 'GET', path }, { signal }),
  });
  const [asked, ask] = useState<Asked | null>(null);
  const close = () => ask(null);
  return (
    <Page
      title="Tenants"
      description="Everything belongs to one tenant, under the tenant's own key encryption key. Tenants cannot see each other."
      actions={
        <Button tone="primary" icon="plus" creates needs="tenants:manage" onClick={() => ask({ kind: 'create' })}>
          Create tenant
        </Button>
      }
    >
      <Panel flush={query.data !== undefined}>
        <Async query={query}>
          {({ items }) => <DataTable caption="Tenants" rows={items} rowKey={({ id }) => id} columns={columns(ask)} />}
        </Async>
      </Panel>
      {asked?.kind === 'create' && (
        <CreateDialog
          kind="tenant"
          help="To work in it, choose it at the top of the page."
          path={path}
          onClose={close}
        />
      )}
      {asked?.kind === 'rename' && (
        <RenameDialog
          kind="tenant"
          name={asked.tenant.name}
          help="Its id and everything in it stay."
          path={tenantPath(asked.tenant.id)}
          own
          renews={[path]}
          onClose={close}
        />
      )}
      {asked?.kind === 'stop' && <StopDialog {...asked} onClose={close} />}
      {asked?.kind === 'reactivate' && <ReactivateDialog {...asked} onClose={close} />}
    </Page>
  );
};
