// One TDE application: its credentials, the instances that used it, its master keys with their
// blast radius, and destruction.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath } from '../api/paths.ts';
import type { AccessGuid, Application, IssuedAccessGuid } from '../api/types.ts';
import { ApplicationMap } from '../map/maps.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { RenameDialog } from '../ui/forms/rename-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { AccessGuidDialog } from './access-guid.tsx';
import { ApplicationTabs } from './application-tabs.tsx';
import { Callers } from './callers.tsx';
import { Compatibility } from './compatibility.tsx';
import { Instances } from './instances.tsx';
import { MasterKeys } from './master-keys.tsx';
import { MoveApplicationDialog } from './move-application.tsx';
import { nameGroup, useGroups } from './use-groups.ts';

const route = getRouteApi('/tde/applications/$id');

const Credentials = ({ application }: { application: Application }) => {
  const path = `${applicationPath(application.id)}/access-guids`;
  const client = useQueryClient();
  const [rotating, setRotating] = useState(false);
  const [issued, setIssued] = useState<IssuedAccessGuid | null>(null);
  const [removing, setRemoving] = useState<AccessGuid | null>(null);
  const query = useQuery({
    queryKey: [applicationsPath, application.id, 'access-guids'],
    queryFn: ({ signal }) => send<{ readonly items: readonly AccessGuid[] }>({ method: 'GET', path }, { signal }),
  });
  const live = query.data?.items.filter((record) => record.removedAt === null) ?? [];
  return (
    <Panel
      title="Credentials"
      description="At most two access_guids can be live, for rotation without an interruption."
      actions={
        <Button
          needs="applications:credentials"
          icon="refresh"
          opens
          onClick={() => setRotating(true)}
          disabled={live.length !== 1}
        >
          Rotate access_guid
        </Button>
      }
      flush={query.data !== undefined}
    >
      <Async query={query} lines={2}>
        {({ items }) => (
          <DataTable
            caption="access_guids"
            rows={items}
            rowKey={(record) => record.id}
            columns={[
              {
                key: 'id',
                header: 'Id',
                names: true,
                cell: (record) => <code className="break-all">{record.id}</code>,
              },
              {
                key: 'state',
                header: 'State',
                cell: (record) => (
                  <StateBadge state={record.removedAt === null ? 'live' : 'removed'} integrity={record.integrity} />
                ),
              },
              { key: 'created', header: 'Issued', cell: (record) => <Time value={record.createdAt} /> },
              { key: 'used', header: 'Last used', cell: (record) => <Time value={record.lastUsedAt} distance /> },
              {
                key: 'actions',
                header: 'Actions',
                end: true,
                actions: true,
                cell: (record) => (
                  <ActionMenu
                    label={`Actions on access_guid ${record.id}`}
                    actions={
                      record.removedAt === null && live.length > 1
                        ? [
                            {
                              text: 'Remove',
                              needs: 'applications:credentials',
                              icon: 'trash',
                              danger: true,
                              onSelect: () => setRemoving(record),
                            },
                          ]
                        : []
                    }
                  />
                ),
              },
            ]}
          />
        )}
      </Async>
      {rotating && (
        <FormDialog<IssuedAccessGuid>
          title="Rotate the access_guid?"
          call={{ method: 'POST', path }}
          creates
          submitLabel="Issue second access_guid"
          onCancel={() => setRotating(false)}
          onDone={async (result) => {
            setRotating(false);
            setIssued(result);
            await client.invalidateQueries({ queryKey: [applicationsPath] });
          }}
        >
          {() => (
            <p>
              A second one is issued and shown only once. Both are valid until you remove the old one. First give every
              instance its new <code>pkcs11.toml</code>. The master keys stay the same.
            </p>
          )}
        </FormDialog>
      )}
      {issued !== null && (
        <AccessGuidDialog applicationName={application.name} issued={issued} onClose={() => setIssued(null)} />
      )}
      {removing !== null && (
        <ActionDialog
          title="Remove this access_guid?"
          call={{ method: 'DELETE', path: `${path}/${encodeURIComponent(removing.id)}` }}
          submitLabel="Remove access_guid"
          danger
          renews={[applicationsPath]}
          done="access_guid removed"
          onClose={() => setRemoving(null)}
        >
          <p>
            Instances that still use it will be refused. Last used: <Time value={removing.lastUsedAt} distance />.
          </p>
        </ActionDialog>
      )}
    </Panel>
  );
};

export const TdeApplicationPage = () => {
  const { id } = route.useParams();
  const groups = useGroups();
  const [switching, setSwitching] = useState(false);
  const [moving, setMoving] = useState(false);
  const [renaming, setRenaming] = useState(false);
  const query = useQuery({
    queryKey: [applicationsPath, id],
    queryFn: ({ signal }) => send<Application>({ method: 'GET', path: applicationPath(id) }, { signal }),
  });
  const application = query.data;
  const disable = application?.state === 'enabled';
  return (
    <Page
      title={application?.name ?? 'TDE application'}
      crumbs={[{ text: 'TDE applications', to: '/tde/applications' }]}
      badge={application !== undefined && <StateBadge state={application.state} integrity={application.integrity} />}
      actions={
        application !== undefined && (
          <>
            <Button needs="applications:manage" opens onClick={() => setRenaming(true)}>
              Rename
            </Button>
            <Button needs="applications:manage" opens onClick={() => setMoving(true)}>
              Move to another group
            </Button>
            <Button
              needs="applications:manage"
              icon={disable ? 'pause' : 'active'}
              opens
              onClick={() => setSwitching(true)}
            >
              {disable ? 'Disable' : 'Enable'}
            </Button>
          </>
        )
      }
    >
      <ApplicationTabs id={id} />
      <Panel>
        <Async query={query}>
          {(value) => (
            <Facts
              items={[
                ['Id', <Copyable key="id" value={value.id} label="application id" />],
                [
                  'Group',
                  <Link key="group" to="/tde/applications" search={{ groupId: value.groupId }} className="link">
                    {nameGroup(groups, value.groupId)}
                  </Link>,
                ],
                ['app_id', <code key="appId">{value.appId}</code>],
                ['Token label', <Copyable key="tokenLabel" value={value.tokenLabel} label="token label" />],
                ['Registered', <Time key="created" value={value.createdAt} />],
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
      {application !== undefined && (
        <>
          <MasterKeys id={id} />
          <ApplicationMap application={application} />
          <Instances id={id} />
          <Credentials application={application} />
          <Callers application={application} />
          <Compatibility application={application} />
        </>
      )}
      {renaming && application !== undefined && (
        <RenameDialog
          kind="application"
          name={application.name}
          help="Its app_id, its credentials and the label of its token stay: its databases notice nothing."
          path={applicationPath(id)}
          renews={[applicationsPath]}
          onClose={() => setRenaming(false)}
        />
      )}
      {moving && application !== undefined && (
        <MoveApplicationDialog application={application} onClose={() => setMoving(false)} />
      )}
      {switching && application !== undefined && (
        <ActionDialog
          title={disable ? `Disable “${application.name}”?` : `Enable “${application.name}”?`}
          call={{ method: 'POST', path: `${applicationPath(id)}/${disable ? 'disable' : 'enable'}` }}
          submitLabel={disable ? 'Disable application' : 'Enable application'}
          danger={disable}
          renews={[applicationsPath]}
          done={disable ? `Application “${application.name}” disabled` : `Application “${application.name}” enabled`}
          onClose={() => setSwitching(false)}
        >
          {disable ? (
            <p>
              Until you enable it again, every instance is refused, and its databases cannot open their keystores or
              read uncached encrypted blocks. No key is lost.
            </p>
          ) : (
            <p>Its instances can use their keys again at once.</p>
          )}
        </ActionDialog>
      )}
    </Page>
  );
};
