// TDE applications: the list, and the registration, which issues the credential of a database.

import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { applicationsPath } from '../api/paths.ts';
import type { Application, RegisteredApplication } from '../api/types.ts';
import { NameField, TextField } from '../ui/fields/field.tsx';
import { FilterBar, SelectFilter } from '../ui/fields/filters.tsx';
import { PickField } from '../ui/fields/pick-field.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge, stateWord } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { AccessGuidDialog } from './access-guid.tsx';
import { nameGroup, useGroups } from './use-groups.ts';

const route = getRouteApi('/tde/applications');

const RegisterApplication = ({
  groupId,
  onRegistered,
  onClose,
}: {
  groupId: string | undefined;
  onRegistered: (registered: RegisteredApplication) => void;
  onClose: () => void;
}) => {
  const client = useQueryClient();
  const groups = useGroups();
  const [name, setName] = useState('');
  const [group, setGroup] = useState(groupId ?? '');
  const [appId, setAppId] = useState('');
  return (
    <FormDialog<RegisteredApplication>
      title="Register an application"
      call={{
        method: 'POST',
        path: applicationsPath,
        body: { name, groupId: group, ...(appId === '' ? {} : { appId }) },
      }}
      creates
      submitLabel="Register application"
      onCancel={onClose}
      onDone={async (registered) => {
        onRegistered(registered);
        await client.invalidateQueries({ queryKey: [applicationsPath] });
      }}
    >
      {(fault) => (
        <>
          <NameField
            help="The name of the database. With one application for each database, their master keys stay separate."
            value={name}
            onValue={setName}
            fault={fault('name')}
          />
          <PickField
            label="Group"
            value={group}
            onValue={setGroup}
            fault={fault('groupId')}
            placeholder={groups.length === 0 ? 'Create a group first' : 'Choose a group'}
            choices={groups.map((choice) => ({ value: choice.id, text: choice.name }))}
          />
          <TextField
            label="app_id"
            optional
            help="Identifies an instance of the database in server_url. Each instance can use its own. Default: derived from the name."
            value={appId}
            onValue={setAppId}
            fault={fault('appId')}
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,63}"
            title="At most 64 letters, digits, dots, dashes and underscores, starting with a letter or digit"
            mono
          />
        </>
      )}
    </FormDialog>
  );
};

const idOf = ({ id }: Application): string => id;
const nameOf = ({ name }: Application): string => name;

export const TdeApplicationsPage = () => {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const openApplication = useNavigate();
  const groups = useGroups();
  const list = useList<Application>(applicationsPath, filters);
  const [registering, setRegistering] = useState(false);
  const [registered, setRegistered] = useState<RegisteredApplication | null>(null);
  const clear = () => void navigate({ search: {}, replace: true });
  const register = (
    <Button tone="primary" icon="plus" creates needs="applications:manage" opens onClick={() => setRegistering(true)}>
      Register application
    </Button>
  );
  return (
    <Page
      title="TDE applications"
      description="One registration for each database. Its access_guid is the credential of the provider library. The same access_guid means the same master keys."
      actions={register}
    >
      <Panel flush>
        <FilterBar active={filters.groupId !== undefined} onClear={clear}>
          <SelectFilter
            label="Group"
            value={filters.groupId}
            onValue={(groupId) => void navigate({ search: { groupId }, replace: true })}
            choices={groups.map((group) => ({ value: group.id, text: group.name }))}
          />
        </FilterBar>
        <ListView
          list={list}
          endless
          caption="TDE applications"
          rowKey={idOf}
          nameOf={nameOf}
          filtered={filters.groupId !== undefined}
          onClearFilters={clear}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (application) => (
                <Link to="/tde/applications/$id" params={{ id: application.id }} className="link">
                  {application.name}
                </Link>
              ),
              sort: ({ name }) => name,
            },
            {
              key: 'state',
              header: 'State',
              cell: (application) => <StateBadge state={application.state} integrity={application.integrity} />,
              sort: ({ state }) => state,
              pick: stateWord,
            },
            {
              key: 'group',
              header: 'Group',
              cell: (application) => nameGroup(groups, application.groupId),
              sort: (application) => nameGroup(groups, application.groupId),
            },
            {
              key: 'appId',
              header: 'app_id',
              cell: (application) => <code>{application.appId}</code>,
              sort: ({ appId }) => appId,
            },
            {
              key: 'created',
              header: 'Registered',
              cell: (application) => <Time value={application.createdAt} />,
              sort: ({ createdAt }) => createdAt,
            },
          ]}
          empty={
            <EmptyState title="No applications yet" action={register}>
              Register one for each database. You get its <code>access_guid</code> and a <code>pkcs11.toml</code> for
              the database host. The database then creates its own master key.
            </EmptyState>
          }
        />
      </Panel>
      {registering && (
        <RegisterApplication
          groupId={filters.groupId}
          onRegistered={(result) => {
            setRegistering(false);
            setRegistered(result);
          }}
          onClose={() => setRegistering(false)}
        />
      )}
      {registered !== null && (
        <AccessGuidDialog
          applicationName={registered.application.name}
          issued={registered}
          onClose={() => {
            setRegistered(null);
            void openApplication({ to: '/tde/applications/$id/setup', params: { id: registered.application.id } });
          }}
        />
      )}
    </Page>
  );
};
