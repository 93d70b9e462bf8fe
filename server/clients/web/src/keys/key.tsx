// One key: its properties, versions and actions, with a link to its history.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { wayBack } from '../../../../base/way-back.ts';
import { send } from '../api/client.ts';
import { applicationPath, keyPath, keysPath } from '../api/paths.ts';
import type { Key, KeyVersion, MasterKey } from '../api/types.ts';
import { KeyMap } from '../map/maps.tsx';
import { saveFile } from '../ui/fields/secret-once.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Copyable, CopyButton } from '../ui/page/copy.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { Badge, StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { nameVault, useVaults } from '../vaults/use-vaults.ts';
import { useKeyActions } from './key-actions.tsx';
import { KeyTimeline } from './key-timeline.tsx';
import { WhoUses } from './key-use.tsx';
import { Tags } from './tags.tsx';

const route = getRouteApi('/keys/$id');

const KeyNotices = ({ value: key }: { value: Key }) => (
  <>
    {key.integrity === 'tampered' && (
      <Notice tone="danger" title="The stored record was changed from outside">
        The service refuses every use of the key. The audit log has the details. Compare the record with a verified
        snapshot.
      </Notice>
    )}
    {key.effectiveState === 'vault-deleted' && (
      <Notice tone="warn" title="Its vault is deleted">
        Every request gets “key not found”. {wayBack(key)}
      </Notice>
    )}
    {key.effectiveState === 'vault-disabled' && (
      <Notice tone="warn" title="Its vault is disabled">
        Every request gets “key not found”. {wayBack(key)}
      </Notice>
    )}
    {key.state === 'soft-deleted' && key.kind === 'general' && (
      <Notice tone="warn" title="Soft-deleted">
        Its vault copy is cleared, and every request gets “key not found”. The record is kept for audit. {wayBack(key)}
      </Notice>
    )}
    {key.state === 'soft-deleted' && key.kind === 'master' && (
      <Notice tone="warn" title="Soft-deleted, and still in use by its database">
        Only the shared vault copy is cleared. {wayBack(key)} To end its use permanently, destroy it on the
        application's page.
      </Notice>
    )}
    {key.state === 'destroyed' && (
      <Notice tone="danger" title="Destroyed">
        Both copies in the service are wiped. {wayBack(key)}{' '}
        {key.unrecoverableAt === null ? (
          'The erasure run has not finished, or there are copies: “Usage” lists them.'
        ) : (
          <>
            Unrecoverable since <Time value={key.unrecoverableAt} />.
          </>
        )}
      </Notice>
    )}
  </>
);

const Versions = ({ id }: { id: string }) => {
  const versions = useQuery({
    queryKey: [keysPath, id, 'versions'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly KeyVersion[] }>({ method: 'GET', path: `${keyPath(id)}/versions` }, { signal }),
  });
  return (
    <Panel title="Versions" flush={versions.data !== undefined}>
      <Async query={versions} lines={2}>
        {({ items }) => (
          <DataTable
            caption="Key versions"
            rows={items}
            rowKey={(version) => String(version.version)}
            columns={[
              { key: 'version', header: 'Version', names: true, cell: (version) => `Version ${version.version}` },
              { key: 'created', header: 'Created', cell: (version) => <Time value={version.createdAt} /> },
              {
                key: 'copy',
                header: 'Vault copy',
                cell: (version) =>
                  version.vaultCopy ? (
                    <Badge tone="ok" icon="active">
                      Present
                    </Badge>
                  ) : (
                    <Badge tone="quiet" icon="trash">
                      Cleared
                    </Badge>
                  ),
              },
            ]}
          />
        )}
      </Async>
    </Panel>
  );
};

const kindOf = ({ kind, algorithm }: Key): string => {
  if (kind === 'general') return 'General-purpose';
  return algorithm === 'aes' || algorithm === 'generic' ? 'TDE master key' : 'Private key of a database';
};

/** The key as the database's library sees it. Only its public half is shown. */
const OnToken = ({ applicationId, id }: { applicationId: string; id: string }) => {
  const query = useQuery({
    queryKey: [keysPath, id, 'master-key'],
    queryFn: ({ signal }) =>
      send<MasterKey>(
        { method: 'GET', path: `${applicationPath(applicationId)}/master-keys/${encodeURIComponent(id)}` },
        { signal },
      ),
  });
  return (
    <Panel title="Token object" description="The key as the database's library sees it.">
      <Async query={query} lines={3}>
        {(key) => (
          <div className="space-y-4">
            <Facts
              items={[
                ['Class', key.class === 'private-key' ? 'Private key' : 'Secret key'],
                ['Origin', key.origin === 'generated' ? 'Created by the service' : 'Imported, unwrapped or derived'],
                [
                  'Export',
                  key.extractable
                    ? key.sensitive
                      ? 'Wrapped under another key only'
                      : 'Allowed: its owner can read the value'
                    : 'Never',
                ],
                ...(key.neverDecrypts
                  ? [['Decryption', 'Permanently disabled: it has wrapped a sensitive key'] as const]
                  : []),
                ...(key.checkValue === null
                  ? []
                  : [['Check value', <Copyable key="check" value={key.checkValue} label="check value" />] as const]),
                ['Object handle', String(key.handle)],
              ]}
            />
            {key.publicKey !== null && <PublicKey name={key.name} pem={key.publicKey} />}
          </div>
        )}
      </Async>
    </Panel>
  );
};

const PublicKey = ({ name, pem }: { name: string; pem: string }) => (
  <div className="space-y-2">
    <p className="font-medium">Public key</p>
    <pre className="overflow-x-auto rounded-md bg-sunken p-3 text-xs">{pem}</pre>
    <p className="flex flex-wrap items-center gap-2">
      <Button
        icon="download"
        onClick={() => saveFile(`${name.replaceAll(/[^A-Za-z0-9._-]+/g, '_')}.pem`, pem, 'application/x-pem-file')}
      >
        Download PEM
      </Button>
      <CopyButton value={pem} label="public key" />
    </p>
  </div>
);

export const KeyPage = () => {
  const { id } = route.useParams();
  const vaults = useVaults();
  const query = useQuery({
    queryKey: [keysPath, id],
    queryFn: ({ signal }) => send<Key>({ method: 'GET', path: keyPath(id) }, { signal }),
  });
  const key = query.data;
  const { actions, dialog } = useKeyActions(key);
  return (
    <Page
      title={key?.name ?? 'Key'}
      crumbs={[{ text: 'Keys', to: '/keys' }]}
      badge={key !== undefined && <StateBadge state={key.effectiveState} integrity={key.integrity} />}
      actions={<ActionMenu label="Actions on this key" actions={actions} />}
    >
      {key !== undefined && <KeyNotices value={key} />}
      <Panel>
        <Async query={query}>
          {(value) => (
            <Facts
              items={[
                ['Id (case-sensitive)', <Copyable key="id" value={value.id} label="key id" />],
                ['Kind', kindOf(value)],
                ['Type', value.type],
                ['Uses', value.usages.join(', ')],
                [
                  'Vault',
                  <Link key="vault" to="/vaults/$id" params={{ id: value.vaultId }} className="link">
                    {nameVault(vaults, value.vaultId)}
                  </Link>,
                ],
                ['Tags', value.tags.length === 0 ? 'none' : <Tags key="tags" tags={value.tags} />],
                ['Created', <Time key="created" value={value.createdAt} />],
                ['Current version', String(value.currentVersion)],
                ...(value.deletedAt === null
                  ? []
                  : [['Soft-deleted', <Time key="deleted" value={value.deletedAt} />] as const]),
                ...(value.reimportedAt === null
                  ? []
                  : [['Imported again', <Time key="reimported" value={value.reimportedAt} />] as const]),
                ...(value.destroyedAt === null
                  ? []
                  : [['Destroyed', <Time key="destroyed" value={value.destroyedAt} />] as const]),
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
      {key !== undefined && <KeyMap value={key} />}
      {key !== undefined && <WhoUses target={key} />}
      {key !== undefined && <KeyTimeline value={key} />}
      {key !== undefined && key.applicationId !== null && <OnToken applicationId={key.applicationId} id={id} />}
      {key !== undefined && <Versions id={id} />}
      {dialog}
    </Page>
  );
};
