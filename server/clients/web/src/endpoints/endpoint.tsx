// One key store endpoint: the settings to enter in the cloud key service, its credentials, and its
// latest requests.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { endpointPath, endpointsPath, keyPath, keysPath } from '../api/paths.ts';
import type { Endpoint, Key } from '../api/types.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { DeleteDialog } from '../ui/forms/delete-dialog.tsx';
import { RenameDialog } from '../ui/forms/rename-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { ActionMenu, type MenuAction } from '../ui/page/menu.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { nameVault, useVaults } from '../vaults/use-vaults.ts';
import { EndpointCredentials } from './credential-list.tsx';
import { EndpointSettingsPanel } from './endpoint-settings.tsx';
import { EndpointTabs } from './endpoint-tabs.tsx';
import { LatencyPanel } from './latency.tsx';
import { RequestLog } from './request-log.tsx';
import { UriEndpoint } from './uri-endpoint.tsx';
import { stateOf } from './use-endpoints.ts';

const route = getRouteApi('/endpoints/$id');

type Action = 'rename' | 'enable' | 'disable' | 'delete';

const EndpointDialog = ({ endpoint, action, onClose }: { endpoint: Endpoint; action: Action; onClose: () => void }) => {
  const path = endpointPath(endpoint.id);
  if (action === 'delete') {
    return (
      <DeleteDialog kind="endpoint" name={endpoint.name} path={path} renews={[endpointsPath]} onClose={onClose}>
        <p>
          The cloud key service can no longer use its key. Everything encrypted under the key becomes unreadable in the
          cloud. The prefix is never used again. The key stays in its vault.
        </p>
      </DeleteDialog>
    );
  }
  if (action === 'rename') {
    return (
      <RenameDialog
        kind="endpoint"
        name={endpoint.name}
        help="Its prefix, credentials and rules stay: the cloud notices nothing."
        path={path}
        renews={[endpointsPath]}
        onClose={onClose}
      />
    );
  }
  const disable = action === 'disable';
  return (
    <ActionDialog
      title={disable ? `Disable “${endpoint.name}”?` : `Enable “${endpoint.name}”?`}
      call={{ method: 'POST', path: `${path}/${action}` }}
      submitLabel={disable ? 'Disable endpoint' : 'Enable endpoint'}
      danger={disable}
      renews={[endpointsPath]}
      done={disable ? `Endpoint “${endpoint.name}” disabled` : `Endpoint “${endpoint.name}” enabled`}
      onClose={onClose}
    >
      {disable ? (
        <p>Every request of the cloud key service will be refused until you enable the endpoint again.</p>
      ) : (
        <p>Signed requests are accepted again at once.</p>
      )}
    </ActionDialog>
  );
};

export const EndpointPage = () => {
  const { id } = route.useParams();
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const vaults = useVaults();
  const [action, setAction] = useState<Action | null>(null);
  const query = useQuery({
    queryKey: [endpointsPath, id],
    queryFn: ({ signal }) => send<Endpoint>({ method: 'GET', path: endpointPath(id) }, { signal }),
  });
  const endpoint = query.data;
  const key = useQuery({
    queryKey: [keysPath, endpoint?.keyId],
    queryFn: ({ signal }) => send<Key>({ method: 'GET', path: keyPath(endpoint?.keyId ?? '') }, { signal }),
    enabled: endpoint !== undefined,
  });
  const actions: MenuAction[] = [];
  if (endpoint !== undefined && endpoint.state !== 'deleted') {
    actions.push({ text: 'Rename', needs: 'endpoints:manage', icon: 'gear', onSelect: () => setAction('rename') });
  }
  if (endpoint?.state === 'enabled') {
    actions.push({ text: 'Disable', needs: 'endpoints:manage', icon: 'pause', onSelect: () => setAction('disable') });
  }
  if (endpoint?.state === 'disabled') {
    actions.push({ text: 'Enable', needs: 'endpoints:manage', icon: 'active', onSelect: () => setAction('enable') });
  }
  if (endpoint !== undefined && endpoint.state !== 'deleted') {
    actions.push({
      text: 'Delete',
      needs: 'endpoints:manage',
      icon: 'trash',
      danger: true,
      onSelect: () => setAction('delete'),
    });
  }
  return (
    <Page
      title={endpoint?.name ?? 'Key store endpoint'}
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
      badge={endpoint !== undefined && <StateBadge state={stateOf(endpoint)} integrity={endpoint.integrity} />}
      actions={<ActionMenu label="Actions on this endpoint" actions={actions} />}
    >
      <EndpointTabs id={id} />
      <Panel title="Cloud configuration">
        <Async query={query}>
          {(value) => (
            <Facts
              items={[
                ['Proxy URI endpoint', <UriEndpoint key="uri" value={value.uriEndpoint} />],
                ['Proxy URI path', <Copyable key="path" value={value.uriPath} label="proxy URI path" />],
                [
                  'External key id (case-sensitive)',
                  <Copyable key="key" value={value.keyId} label="external key id" />,
                ],
                [
                  'Key',
                  <span key="backing" className="inline-flex flex-wrap items-center gap-2">
                    <Link to="/keys/$id" params={{ id: value.keyId }} className="link">
                      {key.data?.name ?? 'Open the key'}
                    </Link>
                    {key.data !== undefined && (
                      <StateBadge state={key.data.effectiveState} integrity={key.data.integrity} />
                    )}
                  </span>,
                ],
                [
                  'Vault',
                  <Link key="vault" to="/keys" search={{ vaultId: value.vaultId }} className="link">
                    {nameVault(vaults, value.vaultId)}
                  </Link>,
                ],
                ['Created', <Time key="created" value={value.createdAt} />],
                [
                  'History',
                  <Link key="history" to="/audit" search={{ subjectId: value.id }} className="link">
                    In the audit log
                  </Link>,
                ],
              ]}
            />
          )}
        </Async>
      </Panel>
      {endpoint !== undefined && endpoint.state !== 'deleted' && <LatencyPanel endpointId={endpoint.id} />}
      {endpoint !== undefined && <EndpointSettingsPanel endpoint={endpoint} />}
      {endpoint !== undefined && endpoint.state !== 'deleted' && <EndpointCredentials endpoint={endpoint} />}
      {endpoint !== undefined && (
        <RequestLog
          endpointId={endpoint.id}
          filters={filters}
          onFilters={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
        />
      )}
      {endpoint !== undefined && action !== null && (
        <EndpointDialog endpoint={endpoint} action={action} onClose={() => setAction(null)} />
      )}
    </Page>
  );
};
