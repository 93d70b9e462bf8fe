// TDE groups: applications of one group can find and use each other's master keys, which a cloned pluggable database needs.

import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { TdeGroup } from '../api/types.ts';
import { useAnnounce } from '../components/announce.tsx';
import { Button } from '../components/button.tsx';
import { NameField } from '../components/field.tsx';
import { FormDialog } from '../components/form.tsx';
import { groupsPath } from '../components/groups.ts';
import { ListView, useList } from '../components/list-view.tsx';
import { Page, Panel } from '../components/page.tsx';
import { EmptyState } from '../components/problem-view.tsx';
import { Time } from '../components/time.tsx';
import { vaultsPath } from '../components/vaults.ts';

const CreateGroup = ({ onClose }: { onClose: () => void }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const [name, setName] = useState('');
  return (
    <FormDialog<TdeGroup>
      title="Create a group"
      call={{ method: 'POST', path: groupsPath, body: { name } }}
      creates
      submitLabel="Create group"
      onCancel={onClose}
      onDone={async (group) => {
        await Promise.all([
          client.invalidateQueries({ queryKey: [groupsPath] }),
          client.invalidateQueries({ queryKey: [vaultsPath] }),
        ]);
        announce(`Group “${group.name}” created`);
        onClose();
      }}
    >
      {(fault) => (
        <NameField
          help="This also creates a vault for the group's master keys."
          value={name}
          onValue={setName}
          fault={fault('name')}
        />
      )}
    </FormDialog>
  );
};

export const TdeGroupsPage = () => {
  const list = useList<TdeGroup>(groupsPath);
  const [creating, setCreating] = useState(false);
  const create = (
    <Button tone="primary" icon="plus" onClick={() => setCreating(true)}>
      Create group
    </Button>
  );
  return (
    <Page
      title="TDE groups"
      description="Applications of one group can find and use each other's master keys, but not change or destroy them. Databases that clone pluggable databases between them belong in one group."
      actions={create}
    >
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="TDE groups"
          rowKey={(group) => group.id}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (group) => (
                <Link to="/tde/applications" search={{ groupId: group.id }} className="link">
                  {group.name}
                </Link>
              ),
            },
            {
              key: 'keys',
              header: 'Master keys',
              cell: (group) => (
                <Link to="/keys" search={{ vaultId: group.vaultId }} className="link">
                  In its vault
                </Link>
              ),
            },
            { key: 'created', header: 'Created', cell: (group) => <Time value={group.createdAt} /> },
          ]}
          empty={
            <EmptyState title="No groups yet" action={create}>
              Create a group first, then register one application for each database in it.
            </EmptyState>
          }
        />
      </Panel>
      {creating && <CreateGroup onClose={() => setCreating(false)} />}
    </Page>
  );
};
