// The master keys of an application: the blast radius of a destruction, and the destruction.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { waysBack } from '../../../../base/way-back.ts';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath, keysPath } from '../api/paths.ts';
import type { BlastRadius, MasterKey } from '../api/types.ts';
import { KeyCopiesNotice } from '../keys/key-copies.tsx';
import { LastUse, useKeyUse } from '../keys/key-use.tsx';
import { RadiusMap } from '../map/maps.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { Dialog } from '../ui/forms/dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge, StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { InstanceTable } from './instances.tsx';

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
            depend on it. Last seen: <Time value={radius.lastUsedAt} distance />.
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
                    ? ', not used yet'
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

/** What the destruction of a master key means now: for the requester and for approvers. */
export const MasterKeyPicture = ({ applicationId, keyId }: { applicationId: string; keyId: string }) => {
  const query = useBlastRadius(applicationId, keyId);
  return (
    <>
      <LastUse query={useKeyUse(keyId)} />
      <Async query={query}>{(radius) => <BlastRadiusView radius={radius} />}</Async>
    </>
  );
};

const BlastRadiusDialog = ({ masterKey, onClose }: { masterKey: MasterKey; onClose: () => void }) => {
  const query = useBlastRadius(masterKey.applicationId, masterKey.id);
  return (
    <Dialog title={`Blast radius of “${masterKey.name}”`} onClose={onClose} wide>
      <p className="mb-4 text-muted">Hosts and applications that lose access if you destroy this master key.</p>
      <Async query={query}>
        {(radius) => (
          <>
            <RadiusMap masterKey={masterKey} radius={radius} />
            <BlastRadiusView radius={radius} />
          </>
        )}
      </Async>
    </Dialog>
  );
};

const DestroyDialog = ({ masterKey, onClose }: { masterKey: MasterKey; onClose: () => void }) => {
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
      submitLabel="Destroy master key"
      onCancel={onClose}
      renews={[applicationsPath, keysPath]}
      done={`Master key “${masterKey.name}” destroyed`}
    >
      <Notice tone="danger" title="This cannot be undone">
        The sealed copy and the vault copy are wiped, and data encrypted under this key becomes unreadable.{' '}
        {waysBack.destroyed.way} The database fails when it next needs the key: after a restart, or when it reads an
        uncached block.
      </Notice>
      <LastUse query={use} />
      <Async query={query}>
        {(radius) => (
          <>
            <RadiusMap masterKey={masterKey} radius={radius} />
            <BlastRadiusView radius={radius} />
          </>
        )}
      </Async>
    </ConfirmDialog>
  );
};

export const MasterKeys = ({ id }: { id: string }) => {
  const list = useList<MasterKey>(masterKeysPath(id), {}, applicationsPath);
  const [radiusOf, setRadiusOf] = useState<MasterKey | null>(null);
  const [destroying, setDestroying] = useState<MasterKey | null>(null);
  return (
    <Panel
      title="Master keys"
      description="All master keys and other keys of its databases, newest first. Records of destroyed keys are kept for audit."
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
                    Wrap only
                  </Badge>
                )}
              </span>
            ),
          },
          {
            key: 'state',
            header: 'State',
            cell: (key) => <StateBadge state={key.effectiveState} integrity={key.integrity} />,
          },
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
                  { text: 'Blast radius', needs: 'master-keys:read', icon: 'info', onSelect: () => setRadiusOf(key) },
                  ...(key.state === 'destroyed'
                    ? []
                    : [
                        {
                          text: 'Destroy',
                          needs: 'master-keys:destroy',
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
            The database creates it. Open the keystore, then run <code>ADMINISTER KEY MANAGEMENT SET KEY</code>.
          </EmptyState>
        }
      />
      {radiusOf !== null && <BlastRadiusDialog masterKey={radiusOf} onClose={() => setRadiusOf(null)} />}
      {destroying !== null && <DestroyDialog masterKey={destroying} onClose={() => setDestroying(null)} />}
    </Panel>
  );
};
