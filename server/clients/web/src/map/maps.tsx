// The maps of dependencies on the pages of a key, a vault and an application, and before a
// destruction. The picture is a part of its own, loaded when it is shown.

import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath, endpointsPath, keysPath } from '../api/paths.ts';
import type {
  Application,
  BlastRadius,
  Copy,
  Endpoint,
  Instance,
  Key,
  MasterKey,
  Snapshot,
  Vault,
} from '../api/types.ts';
import { nameGroup, useGroups } from '../applications/use-groups.ts';
import { useKeyUse } from '../keys/key-use.tsx';
import { useEvery } from '../session/every.ts';
import { useMay } from '../session/may.ts';
import { Panel } from '../ui/page/page.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';
import { nameVault, useVaults } from '../vaults/use-vaults.ts';
import { type Graph, graphOfApplication, graphOfKey, graphOfVault } from './graph.ts';

const Drawn = lazy(() => import('./dependency-map.tsx'));

const about = 'What uses it, and where it is also contained. Follow a thing to its page.';

const Loading = () => (
  <div role="status" aria-label="Loading">
    <div className="skeleton h-32 w-full" />
  </div>
);

const Shown = ({ label, graph }: { label: string; graph: Graph | undefined }) =>
  graph === undefined ? (
    <Loading />
  ) : (
    <Suspense fallback={<Loading />}>
      <Drawn label={label} graph={graph} />
    </Suspense>
  );

const MapPanel = ({ label, graph, whole }: { label: string; graph: Graph | undefined; whole: boolean }) => (
  <Panel title="Dependencies" description={whole ? about : `${about} Parts that your roles do not show are missing.`}>
    <Shown label={label} graph={graph} />
  </Panel>
);

/**
 * First page of a list, with what the person may see; its data are undefined until they are read.
 */
const useFirst = <Row,>(path: string, query: Record<string, string | number>, enabled: boolean) =>
  useQuery({
    queryKey: [path, 'map', query],
    queryFn: ({ signal }) => send<ListPage<Row>>({ method: 'GET', path, query }, { signal }),
    enabled,
  });

const useSnapshots = (): { readonly rows: readonly Snapshot[] | undefined; readonly may: boolean } => {
  const may = useMay()('snapshots:read');
  const list = useFirst<Snapshot>('/api/snapshots', { limit: 100 }, may);
  return { rows: list.data?.items, may };
};

export const useRadius = (applicationId: string | null, keyId: string): BlastRadius | undefined => {
  const may = useMay()('master-keys:read');
  return useQuery({
    queryKey: [applicationsPath, applicationId, 'blast-radius', keyId],
    queryFn: ({ signal }) =>
      send<BlastRadius>(
        {
          method: 'GET',
          path: `${applicationPath(applicationId ?? '')}/master-keys/${encodeURIComponent(keyId)}/blast-radius`,
        },
        { signal },
      ),
    enabled: may && applicationId !== null,
  }).data;
};

export const KeyMap = ({ value: key }: { value: Key }) => {
  const vaults = useVaults();
  const use = useKeyUse(key.id).data;
  const radius = useRadius(key.applicationId, key.id);
  const snapshots = useSnapshots();
  const known = { vaultName: nameVault(vaults, key.vaultId), use, radius, snapshots: snapshots.rows };
  return (
    <MapPanel
      label={`Dependencies of the key ${key.name}`}
      graph={use === undefined ? undefined : graphOfKey(key, known)}
      whole={snapshots.may}
    />
  );
};

/** Before a destruction, from the same answer as its text. */
export const RadiusMap = ({ masterKey, radius }: { masterKey: MasterKey; radius: BlastRadius }) => {
  const vaults = useVaults();
  const known = { vaultName: nameVault(vaults, masterKey.vaultId), radius, snapshots: useSnapshots().rows };
  return <Shown label={`Dependencies of the key ${masterKey.name}`} graph={graphOfKey(masterKey, known)} />;
};

export const VaultMap = ({ vault }: { vault: Vault }) => {
  const may = useMay();
  const keys = useFirst<Key>(keysPath, { vaultId: vault.id, limit: 50 }, may('keys:read')).data;
  const endpoints = useEvery<Endpoint>(endpointsPath, 'endpoints:read');
  const applications = useEvery<Application>(applicationsPath, 'applications:read');
  const snapshots = useSnapshots();
  const copies = useFirst<Copy>('/api/copies', { left: 'true', limit: 50 }, snapshots.may).data?.items;
  return (
    <MapPanel
      label={`Dependencies of the vault ${vault.name}`}
      graph={
        keys === undefined
          ? undefined
          : graphOfVault(vault, {
              ...{ keys: keys.items, hasMoreKeys: keys.next !== null },
              ...{ endpoints, applications, copies, snapshots: snapshots.rows },
            })
      }
      whole={snapshots.may && may('endpoints:read') && may('applications:read')}
    />
  );
};

export const ApplicationMap = ({ application }: { application: Application }) => {
  const may = useMay();
  const path = applicationPath(application.id);
  const mayKeys = may('master-keys:read');
  const keys = useFirst<MasterKey>(`${path}/master-keys`, { limit: 50 }, mayKeys).data;
  const instances = useFirst<Instance>(`${path}/instances`, {}, true).data;
  const groups = useGroups();
  const isRead = instances !== undefined && (keys !== undefined || !mayKeys);
  return (
    <MapPanel
      label={`Dependencies of the application ${application.name}`}
      graph={
        isRead
          ? graphOfApplication(application, {
              groupName: nameGroup(groups, application.groupId),
              ...{ keys: keys?.items ?? [], hasMoreKeys: (keys?.next ?? null) !== null, instances: instances.items },
            })
          : undefined
      }
      whole={mayKeys}
    />
  );
};
