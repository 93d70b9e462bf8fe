// One TDE application: its credentials, the instances that used it, its master keys with their blast radius, and destruction.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { AccessGuid, Application, BlastRadius, Instance, IssuedAccessGuid, MasterKey } from '../api/types.ts';
import { AccessGuidDialog } from '../components/access-guid.tsx';
import { ActionDialog } from '../components/action-dialog.tsx';
import { useAnnounce } from '../components/announce.tsx';
import { ApplicationTabs } from '../components/application-tabs.tsx';
import { applicationPath, applicationsPath } from '../components/applications.ts';
import { Async } from '../components/async.tsx';
import { Button } from '../components/button.tsx';
import { Callers } from '../components/callers.tsx';
import { Compatibility } from '../components/compatibility.tsx';
import { testConnection } from '../components/config-lines.tsx';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { Copyable } from '../components/copy.tsx';
import { DataTable } from '../components/data-table.tsx';
import { Dialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form.tsx';
import { nameGroup, useGroups } from '../components/groups.ts';
import { KeyCopiesNotice } from '../components/key-copies.tsx';
import { LastUse, useKeyUse } from '../components/key-use.tsx';
import { keysPath } from '../components/keys.ts';
import { ListView, useList } from '../components/list-view.tsx';
import { ActionMenu } from '../components/menu.tsx';
import { MoveApplicationDialog } from '../components/move-application.tsx';
import { Notice } from '../components/notice.tsx';
import { Facts, Page, Panel } from '../components/page.tsx';
import { EmptyState } from '../components/problem-view.tsx';
import { Badge, StateBadge } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';

const route = getRouteApi('/tde/applications/$id');

// --- credentials ------------------------------------------------------------------------------------------------------

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
      description="At most two access_guids are live at once, so that instances can change over without a gap."
      actions={
        <Button icon="refresh" onClick={() => setRotating(true)} disabled={live.length !== 1}>
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
                        ? [{ text: 'Remove…', icon: 'trash', danger: true, onSelect: () => setRemoving(record) }]
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
          submitLabel="Issue a second access_guid"
          onCancel={() => setRotating(false)}
          onDone={async (result) => {
            setRotating(false);
            setIssued(result);
            await client.invalidateQueries({ queryKey: [applicationsPath] });
          }}
        >
          {() => (
            <p>
              A second one is issued and shown once. Both hold until you remove the old one, after every instance has
              its new <code>pkcs11.toml</code>. The master keys stay the same.
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
            Instances that still present it are refused from now on. It was last used:{' '}
            <Time value={removing.lastUsedAt} distance />.
          </p>
        </ActionDialog>
      )}
    </Panel>
  );
};

// --- instances --------------------------------------------------------------------------------------------------------

const InstanceTable = ({ caption, instances }: { caption: string; instances: readonly Instance[] }) => (
  <DataTable
    caption={caption}
    rows={instances}
    rowKey={(instance) => instance.id}
    columns={[
      { key: 'appId', header: 'app_id', names: true, cell: (instance) => <code>{instance.appId}</code> },
      { key: 'host', header: 'Host', cell: (instance) => <span className="break-all">{instance.host}</span> },
      {
        key: 'process',
        header: 'Process',
        cell: (instance) => (
          <span title={`Last process id ${instance.pid}`} className="break-all">
            {instance.process} <span className="text-muted">({instance.osUser})</span>
          </span>
        ),
      },
      { key: 'library', header: 'Library', cell: (instance) => instance.libraryVersion },
      { key: 'used', header: 'Last seen', cell: (instance) => <Time value={instance.lastUsedAt} distance /> },
    ]}
  />
);

const Instances = ({ id }: { id: string }) => {
  const query = useQuery({
    queryKey: [applicationsPath, id, 'instances'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Instance[] }>(
        { method: 'GET', path: `${applicationPath(id)}/instances` },
        { signal },
      ),
    refetchInterval: 30_000,
  });
  return (
    <Panel
      title="Instances"
      description="Hosts and processes that used it, latest first."
      flush={query.data !== undefined}
    >
      <Async query={query} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No instance has called yet">
              Install the library and <code>pkcs11.toml</code> on the database host, test the connection there with{' '}
              <code>{testConnection}</code>, then open the keystore.
            </EmptyState>
          ) : (
            <InstanceTable caption="Instances" instances={items} />
          )
        }
      </Async>
    </Panel>
  );
};

// --- master keys ------------------------------------------------------------------------------------------------------

const useBlastRadius = (applicationId: string, keyId: string) =>
  useQuery({
    queryKey: [applicationsPath, applicationId, 'blast-radius', keyId],
    queryFn: ({ signal }) =>
      send<BlastRadius>({ method: 'GET', path: `${masterKeyPath(applicationId, keyId)}/blast-radius` }, { signal }),
    // The key's use may have started a moment ago: always read again.
    staleTime: 0,
    gcTime: 0,
  });

const masterKeysPath = (applicationId: string): string => `${applicationPath(applicationId)}/master-keys`;
const masterKeyPath = (applicationId: string, keyId: string): string =>
  `${masterKeysPath(applicationId)}/${encodeURIComponent(keyId)}`;

const BlastRadiusView = ({ radius }: { radius: BlastRadius }) => {
  const borrowers = radius.groupApplications.filter((application) => application.instances.length > 0);
  const isUnused = radius.instances.length === 0 && borrowers.length === 0;
  return (
    <div className="space-y-4">
      <KeyCopiesNotice copies={radius.copies} />
      <p>
        {isUnused ? (
          'No instance has used this application yet.'
        ) : (
          <>
            <strong>
              {radius.hosts.length} {radius.hosts.length === 1 ? 'host' : 'hosts'}, {radius.appIds.length}{' '}
              {radius.appIds.length === 1 ? 'app_id' : 'app_ids'}
            </strong>{' '}
            depend on it; last seen: <Time value={radius.lastUsedAt} distance />.
          </>
        )}
      </p>
      {radius.instances.length > 0 && (
        <div className="rounded-lg border border-line">
          <InstanceTable caption={`Instances of ${radius.applicationName}`} instances={radius.instances} />
        </div>
      )}
      {radius.groupApplications.length > 0 && (
        <div>
          <p className="font-medium">Other applications of the group can use it too</p>
          <ul className="mt-1 list-disc pl-5">
            {radius.groupApplications.map((application) => (
              <li key={application.id}>
                {application.name}
                <span className="text-muted">
                  {application.instances.length === 0
                    ? ', never used so far'
                    : `, used from ${new Set(application.instances.map((instance) => instance.host)).size} host(s)`}
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
};

const BlastRadiusDialog = ({ masterKey, onClose }: { masterKey: MasterKey; onClose: () => void }) => {
  const query = useBlastRadius(masterKey.applicationId, masterKey.id);
  return (
    <Dialog title={`Blast radius of “${masterKey.name}”`} onClose={onClose} wide>
      <p className="mb-4 text-muted">Everybody who would lose access if this master key were destroyed.</p>
      <Async query={query}>{(radius) => <BlastRadiusView radius={radius} />}</Async>
    </Dialog>
  );
};

const DestroyDialog = ({ masterKey, onClose }: { masterKey: MasterKey; onClose: () => void }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const query = useBlastRadius(masterKey.applicationId, masterKey.id);
  const use = useKeyUse(masterKey.id);
  return (
    <ConfirmDialog
      title={`Destroy “${masterKey.name}”?`}
      expected={masterKey.name}
      expectedKind="name of the master key"
      ready={query.data !== undefined && use.data !== undefined}
      wide
      call={{
        method: 'POST',
        path: `${masterKeyPath(masterKey.applicationId, masterKey.id)}/destroy`,
        body: { confirm: masterKey.name },
      }}
      submitLabel="Destroy for good"
      onCancel={onClose}
      onDone={async () => {
        await Promise.all([
          client.invalidateQueries({ queryKey: [applicationsPath] }),
          client.invalidateQueries({ queryKey: [keysPath] }),
        ]);
        announce(`Master key “${masterKey.name}” destroyed`);
        onClose();
      }}
    >
      <Notice tone="danger" title="This cannot be undone">
        The sealed copy and the vault copy are wiped. Data encrypted under this key becomes unreadable for good as soon
        as the database needs the key again: at a restart, a new open of the keystore, or an uncached block.
      </Notice>
      <LastUse query={use} />
      <Async query={query}>{(radius) => <BlastRadiusView radius={radius} />}</Async>
    </ConfirmDialog>
  );
};

const MasterKeys = ({ id }: { id: string }) => {
  const list = useList<MasterKey>(masterKeysPath(id), {}, applicationsPath);
  const [radiusOf, setRadiusOf] = useState<MasterKey | null>(null);
  const [destroying, setDestroying] = useState<MasterKey | null>(null);
  return (
    <Panel
      title="Master keys"
      description="Master keys and other keys of its databases: the whole history, newest first; destroyed ones stay as evidence."
      flush
    >
      <ListView
        list={list}
        caption="Master keys"
        rowKey={(key) => key.id}
        columns={[
          {
            key: 'name',
            header: 'Label',
            names: true,
            cell: (key) => (
              <Link to="/keys/$id" params={{ id: key.id }} className="link inline-block min-w-40 break-all">
                {key.name}
              </Link>
            ),
          },
          {
            key: 'type',
            header: 'Type',
            cell: (key) => (
              <span className="flex flex-wrap items-center gap-1">
                <span className="whitespace-nowrap">{key.type}</span>
                {key.newest && (
                  <Badge tone="ok" icon="key">
                    Newest
                  </Badge>
                )}
                {key.class === 'private-key' && (
                  <Badge tone="quiet" icon="key">
                    Private key
                  </Badge>
                )}
                {key.neverDecrypts && (
                  <Badge tone="quiet" icon="blocked">
                    Wraps, never decrypts
                  </Badge>
                )}
              </span>
            ),
          },
          { key: 'state', header: 'State', cell: (key) => <StateBadge state={key.state} integrity={key.integrity} /> },
          {
            key: 'copies',
            header: 'Copies',
            cell: (key) => (
              <span className="flex flex-wrap gap-1">
                <Badge tone={key.sealedCopy ? 'ok' : 'danger'} icon={key.sealedCopy ? 'active' : 'destroyed'}>
                  {key.sealedCopy ? 'Sealed copy' : 'Sealed copy wiped'}
                </Badge>
                <Badge tone={key.vaultCopy ? 'ok' : 'quiet'} icon={key.vaultCopy ? 'active' : 'trash'}>
                  {key.vaultCopy ? 'Vault copy' : 'Vault copy cleared'}
                </Badge>
              </span>
            ),
          },
          { key: 'created', header: 'Created', cell: (key) => <Time value={key.createdAt} /> },
          {
            key: 'used',
            header: 'Last used',
            cell: (key) => (
              <span className="flex flex-col">
                <Time value={key.lastUsedAt} distance />
                {key.firstUsedAt !== null && (
                  <span className="text-muted">
                    first <Time value={key.firstUsedAt} />
                  </span>
                )}
              </span>
            ),
          },
          {
            key: 'actions',
            header: 'Actions',
            end: true,
            actions: true,
            cell: (key) => (
              <ActionMenu
                label={`Actions on master key ${key.name}`}
                actions={[
                  { text: 'Blast radius…', icon: 'info', onSelect: () => setRadiusOf(key) },
                  ...(key.state === 'destroyed'
                    ? []
                    : [
                        {
                          text: 'Destroy…',
                          icon: 'destroyed',
                          danger: true,
                          onSelect: () => setDestroying(key),
                        } as const,
                      ]),
                ]}
              />
            ),
          },
        ]}
        empty={
          <EmptyState title="No master key yet">
            The database makes it: <code>ADMINISTER KEY MANAGEMENT SET KEY</code>, once the keystore is open.
          </EmptyState>
        }
      />
      {radiusOf !== null && <BlastRadiusDialog masterKey={radiusOf} onClose={() => setRadiusOf(null)} />}
      {destroying !== null && <DestroyDialog masterKey={destroying} onClose={() => setDestroying(null)} />}
    </Panel>
  );
};

// --- the page ---------------------------------------------------------------------------------------------------------

export const TdeApplicationPage = () => {
  const { id } = route.useParams();
  const groups = useGroups();
  const [switching, setSwitching] = useState(false);
  const [moving, setMoving] = useState(false);
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
            <Button onClick={() => setMoving(true)}>Move to another group</Button>
            <Button icon={disable ? 'pause' : 'active'} onClick={() => setSwitching(true)}>
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
          <Instances id={id} />
          <Credentials application={application} />
          <Callers application={application} />
          <Compatibility application={application} />
        </>
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
              Every instance is refused from now on, and its databases cannot open their keystores or read uncached
              encrypted blocks until it is enabled again. No key is lost.
            </p>
          ) : (
            <p>Its instances are served again at once.</p>
          )}
        </ActionDialog>
      )}
    </Page>
  );
};
