// One key store endpoint: what the cloud key service must be told, its credentials, and its latest requests.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { Endpoint, EndpointCredential, Key, ProxyConfiguration } from '../api/types.ts';
import { ActionDialog } from '../components/action-dialog.tsx';
import { useAnnounce } from '../components/announce.tsx';
import { Async } from '../components/async.tsx';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { Copyable } from '../components/copy.tsx';
import { DataTable } from '../components/data-table.tsx';
import { DeleteDialog } from '../components/delete-dialog.tsx';
import { EndpointSettingsPanel } from '../components/endpoint-settings.tsx';
import { EndpointTabs } from '../components/endpoint-tabs.tsx';
import { endpointPath, endpointsPath } from '../components/endpoints.ts';
import { FormDialog } from '../components/form.tsx';
import { keyPath, keysPath } from '../components/key-actions.tsx';
import { ActionMenu, type MenuAction } from '../components/menu.tsx';
import { Facts, Page, Panel } from '../components/page.tsx';
import { EmptyState } from '../components/problem-view.tsx';
import { RequestLog } from '../components/request-log.tsx';
import { SecretOnceDialog, SecretValue, saveFile } from '../components/secret-once.tsx';
import { StateBadge } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';
import { nameVault, useVaults } from '../components/vaults.ts';

const route = getRouteApi('/endpoints/$id');

const CredentialDialog = ({
  endpoint,
  issued,
  onClose,
}: {
  endpoint: Endpoint;
  issued: ProxyConfiguration;
  onClose: () => void;
}) => (
  <SecretOnceDialog
    title={`Credential of “${endpoint.name}”`}
    notice="This is the only time the secret access key is shown. Whoever has it can encrypt and decrypt through this endpoint."
    taken="I have stored the credential or the file"
    onClose={onClose}
  >
    <SecretValue label="Access key ID" value={issued.XksProxyAuthenticationCredential.AccessKeyId} />
    <SecretValue label="Secret access key" value={issued.XksProxyAuthenticationCredential.RawSecretAccessKey} />
    <div className="space-y-2">
      <p className="font-medium">Proxy configuration file</p>
      <p className="text-muted">
        Upload it in the AWS console when the external key store is created, or when its proxy credential is edited.
      </p>
      <Button
        icon="download"
        className="max-sm:w-full"
        onClick={() =>
          saveFile(`xks-proxy-${endpoint.prefix}.json`, `${JSON.stringify(issued, null, 2)}\n`, 'application/json')
        }
      >
        Download JSON
      </Button>
    </div>
  </SecretOnceDialog>
);

const Credentials = ({ endpoint }: { endpoint: Endpoint }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const path = `${endpointPath(endpoint.id)}/credentials`;
  const [adding, setAdding] = useState(false);
  const [issued, setIssued] = useState<ProxyConfiguration | null>(null);
  const [removing, setRemoving] = useState<EndpointCredential | null>(null);
  const full = endpoint.credentials.length >= 2;
  return (
    <Panel
      title="Credentials"
      description="Two at most, for a change without a gap: add the new one, enter it at the cloud key service, remove the old one."
      actions={
        <Button
          icon="plus"
          onClick={() => setAdding(true)}
          disabled={full}
          title={full ? 'Two are live: remove one first' : undefined}
        >
          Add credential
        </Button>
      }
      flush
    >
      {endpoint.credentials.length === 0 ? (
        <EmptyState title="No credential yet">
          Without one nobody can call this endpoint. Add one and hand its JSON file to the cloud key service.
        </EmptyState>
      ) : (
        <DataTable
          caption="Credentials"
          rows={endpoint.credentials}
          rowKey={(credential) => credential.id}
          columns={[
            {
              key: 'id',
              header: 'Access key ID',
              names: true,
              cell: (credential) => <Copyable value={credential.accessKeyId} label="access key id" />,
            },
            { key: 'created', header: 'Created', cell: (credential) => <Time value={credential.createdAt} /> },
            { key: 'used', header: 'Last used', cell: (credential) => <Time value={credential.lastUsedAt} distance /> },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (credential) => (
                <ActionMenu
                  label={`Actions on credential ${credential.accessKeyId}`}
                  actions={[{ text: 'Remove…', icon: 'trash', danger: true, onSelect: () => setRemoving(credential) }]}
                />
              ),
            },
          ]}
        />
      )}
      {adding && (
        <FormDialog<ProxyConfiguration>
          title="Add a credential?"
          call={{ method: 'POST', path }}
          creates
          submitLabel="Add credential"
          onCancel={() => setAdding(false)}
          onDone={async (result) => {
            setAdding(false);
            setIssued(result);
            await client.invalidateQueries({ queryKey: [endpointsPath] });
          }}
        >
          {() => <p>Its secret access key is shown once, with the JSON file for the cloud key service.</p>}
        </FormDialog>
      )}
      {issued !== null && <CredentialDialog endpoint={endpoint} issued={issued} onClose={() => setIssued(null)} />}
      {removing !== null && (
        <ConfirmDialog
          title="Remove this credential?"
          expected={removing.accessKeyId}
          expectedKind="access key ID"
          call={{ method: 'DELETE', path: `${path}/${encodeURIComponent(removing.id)}` }}
          submitLabel="Remove credential"
          onCancel={() => setRemoving(null)}
          onDone={async () => {
            await client.invalidateQueries({ queryKey: [endpointsPath] });
            announce(`Credential ${removing.accessKeyId} removed`);
            setRemoving(null);
          }}
        >
          <p>
            Requests signed with it fail from now on with <code>AuthenticationFailedException</code>. It was last used:{' '}
            <Time value={removing.lastUsedAt} distance />.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
};

type Action = 'enable' | 'disable' | 'delete';

const EndpointDialog = ({ endpoint, action, onClose }: { endpoint: Endpoint; action: Action; onClose: () => void }) => {
  const path = endpointPath(endpoint.id);
  if (action === 'delete') {
    return (
      <DeleteDialog kind="endpoint" name={endpoint.name} path={path} renews={[endpointsPath]} onClose={onClose}>
        <p>
          The cloud key service can no longer use the key behind it, and everything encrypted under it becomes
          unreadable there. The prefix is never given again; the key itself stays in its vault.
        </p>
      </DeleteDialog>
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
        <p>Every request of the cloud key service is refused from now on, until the endpoint is enabled again.</p>
      ) : (
        <p>Signed requests are served again at once.</p>
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
  if (endpoint?.state === 'enabled') {
    actions.push({ text: 'Disable…', icon: 'pause', onSelect: () => setAction('disable') });
  }
  if (endpoint?.state === 'disabled') {
    actions.push({ text: 'Enable…', icon: 'active', onSelect: () => setAction('enable') });
  }
  if (endpoint !== undefined && endpoint.state !== 'deleted') {
    actions.push({ text: 'Delete…', icon: 'trash', danger: true, onSelect: () => setAction('delete') });
  }
  return (
    <Page
      title={endpoint?.name ?? 'Key store endpoint'}
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
      badge={endpoint !== undefined && <StateBadge state={endpoint.state} integrity={endpoint.integrity} />}
      actions={<ActionMenu label="Actions on this endpoint" actions={actions} />}
    >
      <EndpointTabs id={id} />
      <Panel title="For the cloud key service">
        <Async query={query}>
          {(value) => (
            <Facts
              items={[
                ['Proxy URI endpoint', <Copyable key="uri" value={location.origin} label="proxy URI endpoint" />],
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
                    {key.data !== undefined && <StateBadge state={key.data.state} integrity={key.data.integrity} />}
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
      {endpoint !== undefined && <EndpointSettingsPanel endpoint={endpoint} />}
      {endpoint !== undefined && endpoint.state !== 'deleted' && <Credentials endpoint={endpoint} />}
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
