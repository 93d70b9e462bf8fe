// Key store endpoints: the list, and the form for a new one.

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { send } from '../api/client.ts';
import { endpointPath, endpointsPath, keyPath, keysPath } from '../api/paths.ts';
import type { Endpoint, Key } from '../api/types.ts';
import { CheckField, NameField, TextField } from '../ui/fields/field.tsx';
import { PickField } from '../ui/fields/pick-field.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge, stateWord } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { BulkActions, type RowsAction } from '../ui/table/bulk-actions.tsx';
import { type ListPage, ListView, useList } from '../ui/table/list-view.tsx';
import { nameVault, useVaults } from '../vaults/use-vaults.ts';
import { stateOf } from './use-endpoints.ts';

/** The first keys of a vault that an endpoint can use; others are found by name. */
const useKeyChoices = (vaultId: string): readonly Key[] =>
  useQuery({
    queryKey: [keysPath, 'choices', vaultId],
    queryFn: ({ signal }) =>
      send<ListPage<Key>>(
        { method: 'GET', path: keysPath, query: { vaultId, kind: 'general', state: 'active', limit: 100 } },
        { signal },
      ),
    enabled: vaultId !== '',
  }).data?.items ?? [];

/**
 * The vault of a key that was found by name in another vault than the chosen one; null: not known,
 * or none.
 */
const useVaultOf = (keyId: string, isKnown: boolean): string | null =>
  useQuery({
    queryKey: [keyPath(keyId), 'choice'],
    queryFn: ({ signal }) => send<Key>({ method: 'GET', path: keyPath(keyId) }, { signal }),
    enabled: keyId !== '' && !isKnown,
  }).data?.vaultId ?? null;

const CreateEndpoint = ({ onClose }: { onClose: () => void }) => {
  const navigate = useNavigate();
  const vaults = useVaults();
  const [name, setName] = useState('');
  const [prefix, setPrefix] = useState('');
  const [vaultId, setVaultId] = useState('');
  const [keyId, setKeyId] = useState('');
  const [operatorProbes, setOperatorProbes] = useState(true);
  const keys = useKeyChoices(vaultId);
  const itsVault = useVaultOf(
    keyId,
    keys.some(({ id }) => id === keyId),
  );
  useEffect(() => {
    if (itsVault !== null) setVaultId(itsVault);
  }, [itsVault]);
  return (
    <FormDialog<Endpoint>
      title="Create a key store endpoint"
      call={{
        method: 'POST',
        path: endpointsPath,
        body: { name, ...(prefix === '' ? {} : { prefix }), vaultId, keyId, settings: { operatorProbes } },
      }}
      creates
      submitLabel="Create endpoint"
      onCancel={onClose}
      renews={[endpointsPath]}
      done={(endpoint) => `Endpoint “${endpoint.name}” created`}
      onDone={(endpoint) => navigate({ to: '/endpoints/$id/setup', params: { id: endpoint.id } })}
    >
      {(fault) => (
        <>
          <NameField
            help="For example, the cloud account or the external key store that it serves."
            value={name}
            onValue={setName}
            fault={fault('name')}
          />
          <PickField
            label="Vault"
            value={vaultId}
            onValue={(value) => {
              setVaultId(value);
              setKeyId('');
            }}
            fault={fault('vaultId')}
            placeholder="Choose a vault"
            choices={vaults
              .filter((vault) => vault.kind === 'general' && vault.state === 'enabled')
              .map((vault) => ({ value: vault.id, text: vault.name }))}
          />
          <PickField
            label="Key"
            kind="key"
            value={keyId}
            onValue={setKeyId}
            fault={fault('keyId')}
            placeholder={vaultId === '' ? 'Its name, or choose the vault first' : 'Choose a key'}
            choices={keys.map((key) => ({ value: key.id, text: key.name }))}
            help="Its id is the external key id in the cloud key service."
          />
          <TextField
            label="Prefix"
            optional
            help="A segment of the endpoint's path. Default: a random prefix, which is harder to guess."
            value={prefix}
            onValue={setPrefix}
            fault={fault('prefix')}
            pattern="[A-Za-z0-9][A-Za-z0-9_\-]{0,63}"
            title="At most 64 letters, digits, dashes and underscores, starting with a letter or digit"
            mono
          />
          <CheckField
            label="Answer unsigned health probes"
            help="For load balancers and operators. Encryption always requires a signature."
            checked={operatorProbes}
            onValue={setOperatorProbes}
          />
        </>
      )}
    </FormDialog>
  );
};

const idOf = ({ id }: Endpoint): string => id;
const nameOf = ({ name }: Endpoint): string => name;

const post =
  (verb: string) =>
  ({ id }: Endpoint) =>
    ({ method: 'POST', path: `${endpointPath(id)}/${verb}` }) as const;
const bulk: readonly RowsAction<Endpoint>[] = [
  {
    ...{ verb: 'Disable', needs: 'endpoints:manage', danger: true, callOf: post('disable') },
    text: 'Every request of the cloud to these endpoints will be refused until you enable them again.',
  },
  {
    ...{ verb: 'Enable', needs: 'endpoints:manage', callOf: post('enable') },
    text: 'Signed requests are accepted again at once.',
  },
];

export const EndpointsPage = () => {
  const list = useList<Endpoint>(endpointsPath);
  const vaults = useVaults();
  const [creating, setCreating] = useState(false);
  const create = (
    <Button tone="primary" icon="plus" creates needs="endpoints:manage" opens onClick={() => setCreating(true)}>
      Create endpoint
    </Button>
  );
  return (
    <Page
      title="Key store endpoints"
      description="The addresses where a cloud key service reaches its external key store. Each uses one vault and one key, and its requests are signed with its own credential."
      actions={create}
    >
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="Key store endpoints"
          rowKey={idOf}
          nameOf={nameOf}
          bulk={(rows, onDone) => (
            <BulkActions
              rows={rows}
              actions={bulk}
              nouns={['endpoint', 'endpoints']}
              nameOf={nameOf}
              renews={[endpointsPath]}
              onDone={onDone}
            />
          )}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (endpoint) => (
                <Link to="/endpoints/$id" params={{ id: endpoint.id }} className="link">
                  {endpoint.name}
                </Link>
              ),
              sort: ({ name }) => name,
            },
            {
              key: 'state',
              header: 'State',
              cell: (endpoint) => <StateBadge state={stateOf(endpoint)} integrity={endpoint.integrity} />,
              sort: stateOf,
              pick: stateWord,
            },
            {
              key: 'path',
              header: 'URI path',
              cell: (endpoint) => <code className="text-xs break-all">{endpoint.uriPath}</code>,
            },
            {
              key: 'vault',
              header: 'Vault',
              cell: (endpoint) => nameVault(vaults, endpoint.vaultId),
              sort: (endpoint) => nameVault(vaults, endpoint.vaultId),
            },
            {
              key: 'credentials',
              header: 'Credentials',
              cell: (endpoint) => String(endpoint.credentials.length),
              sort: ({ credentials }) => credentials.length,
            },
            {
              key: 'created',
              header: 'Created',
              cell: (endpoint) => <Time value={endpoint.createdAt} />,
              sort: ({ createdAt }) => createdAt,
            },
          ]}
          empty={
            <EmptyState title="No endpoints yet" action={create}>
              Create a vault and a key, then an endpoint for the key. You can download its credential as the JSON file
              that the AWS console imports.
            </EmptyState>
          }
        />
      </Panel>
      {creating && <CreateEndpoint onClose={() => setCreating(false)} />}
    </Page>
  );
};
