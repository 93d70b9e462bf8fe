// TDE groups: applications of one group can find and use each other's master keys, which a cloned
// pluggable database needs.

import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { groupsPath, vaultsPath } from '../api/paths.ts';
import type { TdeGroup } from '../api/types.ts';
import { CreateDialog } from '../ui/forms/create-dialog.tsx';
import { RenameDialog } from '../ui/forms/rename-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';

export const TdeGroupsPage = () => {
  const list = useList<TdeGroup>(groupsPath);
  const [creating, setCreating] = useState(false);
  const [renaming, setRenaming] = useState<TdeGroup | null>(null);
  const create = (
    <Button tone="primary" icon="plus" creates needs="applications:manage" opens onClick={() => setCreating(true)}>
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
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (group) => (
                <ActionMenu
                  label={`Actions on group ${group.name}`}
                  actions={[
                    {
                      text: 'Rename',
                      needs: 'applications:manage',
                      icon: 'gear',
                      onSelect: () => setRenaming(group),
                    },
                  ]}
                />
              ),
            },
          ]}
          empty={
            <EmptyState title="No groups yet" action={create}>
              Create a group first, then register one application for each database in it.
            </EmptyState>
          }
        />
      </Panel>
      {renaming !== null && (
        <RenameDialog
          kind="group"
          name={renaming.name}
          help="Its vault is renamed with it. Its applications and keys stay."
          path={`${groupsPath}/${encodeURIComponent(renaming.id)}`}
          vaultId={renaming.vaultId}
          renews={[groupsPath, vaultsPath]}
          onClose={() => setRenaming(null)}
        />
      )}
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
