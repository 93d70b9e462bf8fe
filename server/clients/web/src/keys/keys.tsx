// Keys: the list with its filters, and the form for a new key.

import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { keysPath } from '../api/paths.ts';
import type { Key } from '../api/types.ts';
import { NameField } from '../ui/fields/field.tsx';
import { FilterBar, SelectFilter, TextFilter } from '../ui/fields/filters.tsx';
import { PickField } from '../ui/fields/pick-field.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button, buttonClass } from '../ui/page/button.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { LongName } from '../ui/page/long-name.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { nameVault, useVaults } from '../vaults/use-vaults.ts';
import { BulkKeys } from './bulk-keys.tsx';
import { KeyRowMenu } from './key-actions.tsx';
import { ages, keyKinds, keyQuery, keyStates, uses } from './key-filters.ts';
import { readTags, Tags, TagsField } from './tags.tsx';

const route = getRouteApi('/keys');

const keyId = ({ id }: Key): string => id;
const keyName = ({ name }: Key): string => name;

const CreateKey = ({ vaultId, onClose }: { vaultId: string | undefined; onClose: () => void }) => {
  const navigate = useNavigate();
  const vaults = useVaults();
  const [name, setName] = useState('');
  const [vault, setVault] = useState(vaultId ?? '');
  const [tags, setTags] = useState('');
  const words = readTags(tags);
  return (
    <FormDialog<Key>
      title="Create a key"
      call={{
        method: 'POST',
        path: keysPath,
        body: { name, vaultId: vault, ...(words.length === 0 ? {} : { tags: words }) },
      }}
      creates
      submitLabel="Create key"
      onCancel={onClose}
      renews={[keysPath]}
      done={(key) => `Key “${key.name}” created`}
      onDone={(key) => navigate({ to: '/keys/$id', params: { id: key.id } })}
    >
      {(fault) => (
        <>
          <NameField
            help="The service creates the id, which a cloud key store needs."
            value={name}
            onValue={setName}
            fault={fault('name')}
          />
          <PickField
            label="Vault"
            value={vault}
            onValue={setVault}
            fault={fault('vaultId')}
            placeholder="Choose a vault"
            choices={vaults
              .filter((choice) => choice.kind === 'general')
              .map((choice) => ({
                value: choice.id,
                text: choice.state === 'enabled' ? choice.name : `${choice.name} (disabled)`,
                disabled: choice.state !== 'enabled',
              }))}
          />
          <TagsField value={tags} onValue={setTags} fault={fault} />
          <p className="text-muted">
            The key is AES-256. The service creates it, and its value never leaves the service.
          </p>
        </>
      )}
    </FormDialog>
  );
};

const inventory = (
  <Link key="inventory" to="/keys/export" className={buttonClass()}>
    <Icon name="download" />
    Export inventory
  </Link>
);

export const KeysPage = () => {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [creating, setCreating] = useState(false);
  const vaults = useVaults();
  const list = useList<Key>(keysPath, keyQuery(filters, new Date()));
  const filtered = Object.keys(filters).length > 0;
  const setFilter = (change: Partial<typeof filters>) =>
    void navigate({ search: (previous) => ({ ...previous, ...change }), hash: true, replace: true });
  const clear = () => void navigate({ search: {}, replace: true });
  const create = (
    <Button key="create" tone="primary" icon="plus" creates needs="keys:manage" opens onClick={() => setCreating(true)}>
      Create key
    </Button>
  );
  return (
    <Page
      title="Keys"
      description="General-purpose keys for cloud key stores, and the master keys that databases created through the provider."
      actions={[inventory, create]}
    >
      <Panel flush>
        <FilterBar active={filtered} onClear={clear}>
          <SelectFilter label="Kind" value={filters.kind} onValue={(kind) => setFilter({ kind })} choices={keyKinds} />
          <SelectFilter
            label="State"
            value={filters.state}
            onValue={(state) => setFilter({ state })}
            choices={keyStates}
          />
          <SelectFilter
            label="Vault"
            value={filters.vaultId}
            onValue={(vaultId) => setFilter({ vaultId })}
            choices={vaults.map((vault) => ({ value: vault.id, text: vault.name }))}
          />
          <TextFilter label="Tag" value={filters.tag} onValue={(tag) => setFilter({ tag })} />
          <SelectFilter label="Age" value={filters.age} onValue={(age) => setFilter({ age })} choices={ages} />
          <SelectFilter label="Last use" value={filters.use} onValue={(use) => setFilter({ use })} choices={uses} />
        </FilterBar>
        <ListView
          list={list}
          endless
          exports={`${keysPath}/export`}
          caption="Keys"
          rowKey={keyId}
          nameOf={keyName}
          lines={2}
          bulk={(rows, onDone) => <BulkKeys keys={rows} onDone={onDone} />}
          filtered={filtered}
          onClearFilters={clear}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (key) => (
                <span className="flex flex-col items-start gap-1">
                  <Link to="/keys/$id" params={{ id: key.id }} className="link">
                    <LongName>{key.name}</LongName>
                  </Link>
                  <Tags tags={key.tags} />
                </span>
              ),
              sort: ({ name }) => name,
            },
            {
              key: 'state',
              header: 'State',
              cell: (key) => <StateBadge state={key.effectiveState} integrity={key.integrity} />,
              sort: (key) => key.effectiveState,
            },
            {
              key: 'kind',
              header: 'Kind',
              nowrap: true,
              cell: (key) => (key.kind === 'general' ? 'General-purpose' : 'TDE master key'),
              sort: ({ kind }) => kind,
            },
            {
              key: 'vault',
              header: 'Vault',
              cell: (key) => nameVault(vaults, key.vaultId),
              sort: (key) => nameVault(vaults, key.vaultId),
            },
            {
              key: 'created',
              header: 'Created',
              nowrap: true,
              cell: (key) => <Time value={key.createdAt} />,
              sort: ({ createdAt }) => createdAt,
            },
            {
              key: 'used',
              header: 'Last used',
              nowrap: true,
              cell: (key) =>
                key.lastUsedAt === null ? (
                  <span className="text-muted">never used</span>
                ) : (
                  <Time value={key.lastUsedAt} distance />
                ),
              sort: ({ lastUsedAt }) => lastUsedAt,
            },
            { key: 'actions', header: 'Actions', end: true, actions: true, cell: (key) => <KeyRowMenu target={key} /> },
          ]}
          empty={
            <EmptyState title="No keys yet" action={create}>
              Create one for a cloud key store. Or register a TDE application, and its database creates its own master
              key.
            </EmptyState>
          }
        />
      </Panel>
      {creating && <CreateKey vaultId={filters.vaultId} onClose={() => setCreating(false)} />}
    </Page>
  );
};
