// TDE groups: applications of one group can find and use each other's master keys, which a cloned pluggable database needs.

import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { TdeGroup } from '../api/types.ts';
import { Button } from '../components/button.tsx';
import { CreateDialog } from '../components/create-dialog.tsx';
import { groupsPath } from '../components/groups.ts';
import { ListView, useList } from '../components/list-view.tsx';
import { Page, Panel } from '../components/page.tsx';
import { EmptyState } from '../components/problem-view.tsx';
import { Time } from '../components/time.tsx';
import { vaultsPath } from '../components/vaults.ts';

export const TdeGroupsPage = () => {
  const list = useList<TdeGroup>(groupsPath);
  const [creating, setCreating] = useState(false);
  const create = (
    <Button tone="primary" icon="plus" creates needs="applications:manage" onClick={() => setCreating(true)}>
      Create group
    </Button>
  );
  return (
    <Page
      title="TDE groups"
      description="Applications of one group can find and use each other's master keys, but not change or destroy them. Put databases that clone pluggable databases from each other into one group."
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
      {creating && (
        <CreateDialog
          kind="group"
          help="This also creates a vault for the group's master keys."
          path={groupsPath}
          renews={[groupsPath, vaultsPath]}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  );
};
