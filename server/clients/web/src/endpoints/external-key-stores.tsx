// External key stores: the endpoints' counterparts in the cloud, and whether they are connected.

import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Endpoint, ExternalKeyStore } from '../api/types.ts';
import { NameField, TextField } from '../ui/fields/field.tsx';
import { PickField } from '../ui/fields/pick-field.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import type { IconName } from '../ui/page/icon.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge, type StateTone } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { useEndpoints } from './use-endpoints.ts';

const path = '/api/external-key-stores';
const storePath = (id: string): string => `${path}/${encodeURIComponent(id)}`;

const looks: Readonly<Record<ExternalKeyStore['connection']['state'], readonly [StateTone, IconName, string]>> = {
  CONNECTED: ['ok', 'active', 'Connected'],
  CONNECTING: ['warn', 'clock', 'Connecting'],
  DISCONNECTED: ['warn', 'pause', 'Disconnected'],
  DISCONNECTING: ['warn', 'clock', 'Disconnecting'],
  FAILED: ['danger', 'warning', 'Failed'],
};

const ConnectionView = ({ store: { connection, integrity } }: { store: ExternalKeyStore }) => {
  if (integrity === 'tampered')
    return (
      <Badge tone="danger" icon="warning">
        Tampered with
      </Badge>
    );
  const [tone, icon, word] = looks[connection.state];
  return (
    <span className="flex flex-wrap items-center gap-2">
      <Badge tone={tone} icon={icon}>
        {word}
      </Badge>
      {connection.errorCode !== null && <code className="text-xs break-all">{connection.errorCode}</code>}
      {connection.detail !== null && <span className="text-xs text-muted">{connection.detail}</span>}
      {connection.checkedAt === null && <span className="text-xs text-muted">not checked yet</span>}
    </span>
  );
};

const RegisterStore = ({ endpoints, onClose }: { endpoints: readonly Endpoint[]; onClose: () => void }) => {
  const [name, setName] = useState('');
  const [customKeyStoreId, setCustomKeyStoreId] = useState('');
  const [region, setRegion] = useState('');
  const [endpointId, setEndpointId] = useState('');
  return (
    <FormDialog<ExternalKeyStore>
      title="Register an external key store"
      call={{ method: 'POST', path, body: { name, customKeyStoreId, region, endpointId } }}
      creates
      submitLabel="Register key store"
      onCancel={onClose}
      renews={[path]}
      done={(store) => `External key store “${store.name}” registered`}
    >
      {(fault) => (
        <>
          <NameField value={name} onValue={setName} fault={fault('name')} />
          <TextField
            label="Custom key store id"
            mono
            placeholder="cks-1234567890abcdef0"
            help="Shown in the cloud's console, on the page of the key store."
            value={customKeyStoreId}
            onValue={setCustomKeyStoreId}
            fault={fault('customKeyStoreId')}
          />
          <TextField
            label="Region"
            mono
            placeholder="eu-central-1"
            value={region}
            onValue={setRegion}
            fault={fault('region')}
          />
          <PickField
            label="Endpoint"
            placeholder="Choose an endpoint"
            choices={endpoints
              .filter(({ state }) => state !== 'deleted')
              .map((endpoint) => ({ value: endpoint.id, text: endpoint.name }))}
            value={endpointId}
            onValue={setEndpointId}
            fault={fault('endpointId')}
          />
        </>
      )}
    </FormDialog>
  );
};

interface StoreMenuProps {
  readonly store: ExternalKeyStore;
  readonly onProbe: (store: ExternalKeyStore) => void;
  readonly onRemove: (store: ExternalKeyStore) => void;
}

const StoreMenu = ({ store, onProbe, onRemove }: StoreMenuProps) => (
  <ActionMenu
    label={`Actions on external key store ${store.name}`}
    actions={[
      { text: 'Check now', needs: 'diagnostics:run', icon: 'refresh', onSelect: () => onProbe(store) },
      { text: 'Remove', needs: 'endpoints:manage', icon: 'trash', danger: true, onSelect: () => onRemove(store) },
    ]}
  />
);

export const ExternalKeyStoresPage = () => {
  const list = useList<ExternalKeyStore>(path);
  const endpoints = useEndpoints();
  const [registering, setRegistering] = useState(false);
  const [probing, setProbing] = useState<ExternalKeyStore | null>(null);
  const [removing, setRemoving] = useState<ExternalKeyStore | null>(null);
  const register = (
    <Button tone="primary" icon="plus" creates needs="endpoints:manage" opens onClick={() => setRegistering(true)}>
      Register key store
    </Button>
  );
  return (
    <Page
      title="External key stores"
      description="The endpoints' counterparts in the cloud. DKE checks their connections every few minutes, as the cloud would use them."
      actions={register}
    >
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="External key stores"
          rowKey={(store) => store.id}
          columns={[
            { key: 'name', header: 'Name', names: true, cell: (store) => store.name },
            { key: 'connection', header: 'Connection', cell: (store) => <ConnectionView store={store} /> },
            {
              key: 'since',
              header: 'Since',
              cell: (store) =>
                store.connection.since === null ? (
                  <span className="text-muted">–</span>
                ) : (
                  <Time value={store.connection.since} />
                ),
            },
            {
              key: 'cloud',
              header: 'Custom key store',
              cell: (store) => (
                <span>
                  <code className="text-xs break-all">{store.customKeyStoreId}</code>{' '}
                  <span className="text-muted">{store.region}</span>
                </span>
              ),
            },
            {
              key: 'endpoint',
              header: 'Endpoint',
              cell: (store) => (
                <Link to="/endpoints/$id" params={{ id: store.endpointId }} className="link">
                  {endpoints.find(({ id }) => id === store.endpointId)?.name ?? 'Open'}
                </Link>
              ),
            },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (store) => <StoreMenu store={store} onProbe={setProbing} onRemove={setRemoving} />,
            },
          ]}
          empty={
            <EmptyState title="No external key stores yet" action={register}>
              Create an endpoint. Create the external key store in the cloud, with the proxy configuration file. Then
              register its id here, so that DKE checks its connection.
            </EmptyState>
          }
        />
      </Panel>
      {registering && <RegisterStore endpoints={endpoints} onClose={() => setRegistering(false)} />}
      {probing !== null && (
        <ActionDialog<ExternalKeyStore>
          title={`Check “${probing.name}” now?`}
          call={{ method: 'POST', path: `${storePath(probing.id)}/probe` }}
          submitLabel="Check now"
          renews={[path]}
          done={`“${probing.name}” was checked`}
          onClose={() => setProbing(null)}
        >
          <p>
            Checks health, metadata, encryption and decryption through the public name of its endpoint, within the
            cloud's limit of 250 ms.
          </p>
        </ActionDialog>
      )}
      {removing !== null && (
        <ActionDialog<ExternalKeyStore>
          title={`Remove “${removing.name}”?`}
          call={{ method: 'DELETE', path: storePath(removing.id) }}
          submitLabel="Remove key store"
          danger
          renews={[path]}
          done={`“${removing.name}” removed`}
          onClose={() => setRemoving(null)}
        >
          <p>Nothing changes in the cloud or at the endpoint. DKE no longer checks its connection.</p>
        </ActionDialog>
      )}
    </Page>
  );
};
