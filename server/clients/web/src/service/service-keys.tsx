// The keys of the service itself: root key, keys of sessions and tokens, signing key of the audit
// log. The console rotates them; what needs the host is shown as its command.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { AuditLog, Root, TokenKeyChange } from '../api/types.ts';
import { useMay } from '../session/may.ts';
import { CheckField } from '../ui/fields/field.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { HostCommand } from '../ui/page/host-command.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { ServiceTabs } from './service-tabs.tsx';

const rootPath = '/api/root';
const logPath = '/api/audit/log';

const providerTypes = { file: 'File', passphrase: 'Passphrase', pkcs11: 'HSM (PKCS#11)' } as const;

type Action = 'root' | 'session' | 'token' | 'former-token' | 'audit';

const RootState = ({ root }: { root: Root }) => (
  <div className="space-y-4">
    {root.backup === null ? (
      <Notice tone="warn" title="The root key has no backup">
        Without the root key, no key can be opened.
      </Notice>
    ) : (
      root.backup.epoch < root.epoch && (
        <Notice tone="warn" title="The newest backup of the root key opens nothing">
          It has epoch {root.backup.epoch}, and the service uses epoch {root.epoch}. Create a new backup.
        </Notice>
      )
    )}
    <Facts
      items={[
        ['Epoch', String(root.epoch)],
        [
          'State',
          root.rotating ? (
            <Badge key="state" tone="warn" icon="clock">
              Rotation in progress
            </Badge>
          ) : (
            <Badge key="state" tone="ok" icon="active">
              In use
            </Badge>
          ),
        ],
        [
          'Newest backup',
          root.backup === null ? (
            'none'
          ) : (
            <span key="backup">
              epoch {root.backup.epoch}, <Time value={root.backup.at} />
            </span>
          ),
        ],
        ['File system', root.fileSystem],
        ['Erasure', root.overwritesInPlace ? 'Overwrites in place' : 'Best effort on this file system'],
        ...(root.waitsFor.length === 0 ? [] : [['Waits for', root.waitsFor.join(', ')] as const]),
      ]}
    />
    <DataTable
      caption="What opens the root key"
      rows={root.providers}
      rowKey={({ name }) => name}
      columns={[
        { key: 'name', header: 'Provider', names: true, cell: ({ name }) => name },
        { key: 'type', header: 'Type', cell: ({ type }) => providerTypes[type] },
        { key: 'created', header: 'Created', cell: ({ createdAt }) => <Time value={createdAt} absent="unknown" /> },
        { key: 'opened', header: 'At this start', cell: ({ opened }) => (opened ? 'Opened the root key' : 'Not used') },
      ]}
    />
    <HostCommand line="dke root backup --out root-backup">
      Only the host can create a backup. Run as the user of the service, then store the file separately:
    </HostCommand>
    <HostCommand line="dke root add-provider --help">
      Only the host changes providers, while the service is stopped:
    </HostCommand>
  </div>
);

const ReleaseCopy = ({ name, onClose }: { name: string; onClose: () => void }) => (
  <ConfirmDialog
    title={`Stop waiting for ${name}?`}
    expected={name}
    expectedKind="name"
    call={{ method: 'POST', path: `${rootPath}/copies/release`, body: { name } }}
    submitLabel="Stop waiting"
    renews={[rootPath, '/api/status']}
    done={`The erasure run no longer waits for ${name}`}
    onCancel={onClose}
  >
    <p>
      For a standby that was removed while it was behind. If it became the database afterwards, no key could be opened.
      The audit log records your name.
    </p>
  </ConfirmDialog>
);

const ActDialog = ({ action, onClose }: { action: Action; onClose: () => void }) => {
  const [flag, setFlag] = useState(false);
  switch (action) {
    case 'root':
      return (
        <FormDialog<Root>
          title="Rotate the root key?"
          call={{ method: 'POST', path: `${rootPath}/rotate`, body: {} }}
          submitLabel="Rotate root key"
          submitTone="danger"
          renews={[rootPath, '/api/status']}
          done="Rotation of the root key started"
          onCancel={onClose}
        >
          {() => (
            <p>
              Everything is sealed again in the background while the service runs. Every backup of the root key becomes
              useless: create a new one afterwards.
            </p>
          )}
        </FormDialog>
      );
    case 'session':
      return (
        <ConfirmDialog<{ readonly sessionsEnded: number }>
          title="Rotate the session key?"
          expected="end"
          expectedKind="word"
          call={{ method: 'POST', path: '/api/sessions/rotate-key' }}
          submitLabel="Rotate session key"
          renews={['/api/session']}
          onCancel={onClose}
        >
          <p>All sessions end, also yours, and everyone must sign in again. API tokens stay valid.</p>
        </ConfirmDialog>
      );
    case 'token':
      return (
        <FormDialog<TokenKeyChange>
          title="Rotate the key of API tokens?"
          call={{ method: 'POST', path: '/api/tokens/rotate-key', body: { compromised: flag } }}
          submitLabel="Rotate token key"
          submitTone="danger"
          renews={['/api/tokens']}
          done={({ tokensEnded }) =>
            tokensEnded === 0
              ? 'Token key rotated: all tokens stay valid'
              : `Token key rotated: ${tokensEnded} tokens ended`
          }
          onCancel={onClose}
        >
          {() => (
            <>
              <p>Tokens stay valid. Each is stored under the new key at its next use.</p>
              <CheckField
                label="The key is compromised: revoke all tokens now, also the one of this session"
                checked={flag}
                onValue={setFlag}
              />
            </>
          )}
        </FormDialog>
      );
    case 'former-token':
      return (
        <FormDialog<TokenKeyChange>
          title="Remove the former key of API tokens?"
          call={{ method: 'POST', path: '/api/tokens/end-former-key', body: { force: flag } }}
          submitLabel="Remove former key"
          submitTone="danger"
          renews={['/api/tokens']}
          done={({ tokensEnded }) => `Former token key removed: ${tokensEnded} tokens ended`}
          onCancel={onClose}
        >
          {() => (
            <>
              <p>It is refused while some tokens have not been used since the rotation.</p>
              <CheckField label="Revoke these tokens" checked={flag} onValue={setFlag} />
            </>
          )}
        </FormDialog>
      );
    default:
      return (
        <FormDialog<AuditLog>
          title="Rotate the signing key of the audit log?"
          call={{ method: 'POST', path: `${logPath}/rotate-key` }}
          submitLabel="Rotate signing key"
          submitTone="danger"
          renews={[logPath, rootPath, '/api/audit']}
          done="Signing key rotated. Store the new verifier key"
          onCancel={onClose}
        >
          {() => (
            <p>
              The former key signs a last checkpoint, which names the new key. The root key is rotated too. Afterwards,
              store the new verifier key and back up the root key again.
            </p>
          )}
        </FormDialog>
      );
  }
};

const Signing = ({ onRotate }: { onRotate: () => void }) => {
  const query = useQuery({
    queryKey: [logPath],
    queryFn: ({ signal }) => send<AuditLog>({ method: 'GET', path: logPath }, { signal }),
  });
  return (
    <Panel
      title="Signing key of the audit log"
      actions={
        <Button needs="root:rotate" onClick={onRotate}>
          Rotate signing key
        </Button>
      }
    >
      <Async query={query}>
        {(log) => (
          <div className="space-y-4">
            <div>
              <p className="text-xs text-muted">Verifier key. Store it outside the service.</p>
              <Copyable value={log.verifierKey} label="verifier key" />
            </div>
            <Facts
              items={[
                ['In use since', <Time key="since" value={log.keySince} absent="unknown" />],
                ['Rotation due', <Time key="due" value={log.rotationDueAt} absent="not set" />],
                ['Former keys', String(log.formerKeys.length)],
              ]}
            />
          </div>
        )}
      </Async>
    </Panel>
  );
};

export const ServiceKeysPage = () => {
  const may = useMay();
  const [action, setAction] = useState<Action | null>(null);
  const [releasing, setReleasing] = useState<string | null>(null);
  const query = useQuery({
    queryKey: [rootPath],
    queryFn: ({ signal }) => send<Root>({ method: 'GET', path: rootPath }, { signal }),
    refetchInterval: 10_000,
  });
  return (
    <Page title="Keys of the service" description="They seal keys, sessions and tokens, and sign the audit log.">
      <ServiceTabs />
      <Panel
        title="Root key"
        asOf={query.dataUpdatedAt}
        actions={
          <>
            {query.data?.waitsFor.map((name) => (
              <Button key={name} needs="root:rotate" onClick={() => setReleasing(name)}>
                {`Stop waiting for ${name}`}
              </Button>
            ))}
            <Button needs="root:rotate" onClick={() => setAction('root')}>
              Rotate root key
            </Button>
          </>
        }
      >
        <Async query={query}>{(root) => <RootState root={root} />}</Async>
      </Panel>
      {may('audit:read', { platform: true }) && <Signing onRotate={() => setAction('audit')} />}
      <Panel
        title="Session key"
        actions={
          <Button needs="root:rotate" onClick={() => setAction('session')}>
            Rotate session key
          </Button>
        }
      >
        <p>Sessions are stored under this key. Rotate it after a copy of the database may have been read.</p>
      </Panel>
      <Panel
        title="Key of API tokens"
        actions={
          <>
            <Button needs="tokens:manage" onClick={() => setAction('former-token')}>
              Remove former key
            </Button>
            <Button needs="tokens:manage" onClick={() => setAction('token')}>
              Rotate token key
            </Button>
          </>
        }
      >
        <p>API tokens are stored as hashes under this key. A former key stays valid until you remove it.</p>
      </Panel>
      {action !== null && <ActDialog action={action} onClose={() => setAction(null)} />}
      {releasing !== null && <ReleaseCopy name={releasing} onClose={() => setReleasing(null)} />}
    </Page>
  );
};
