// The credentials of a key store endpoint: at most two, each shown once, with the file that the
// cloud's console imports; and a live meter of the credential in use.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type { Endpoint, EndpointCredential, EndpointRequest, ProxyConfiguration } from '../api/types.ts';
import { FileMode, SecretOnceDialog, SecretValue, saveFile } from '../ui/fields/secret-once.tsx';
import { ConfirmDialog } from '../ui/forms/confirm-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';

export const CredentialDialog = ({
  endpoint,
  issued,
  onClose,
}: {
  endpoint: Endpoint;
  issued: ProxyConfiguration;
  onClose: () => void;
}) => (
  <SecretOnceDialog
    title={`Credential of “${endpoint.name}”`}
    notice="The secret access key is shown only once. Anyone who has it can encrypt and decrypt through this endpoint."
    taken="I have stored the credential or the file"
    onClose={onClose}
  >
    <div>
      <p className="font-medium">Access key id</p>
      <Copyable value={issued.XksProxyAuthenticationCredential.AccessKeyId} label="access key id" />
    </div>
    <SecretValue label="Secret access key" value={issued.XksProxyAuthenticationCredential.RawSecretAccessKey} />
    <div className="space-y-2">
      <p className="font-medium">Proxy configuration file</p>
      <p className="text-muted">
        Upload it in the AWS console when you create the external key store or edit its proxy credential.
      </p>
      <Button
        icon="download"
        className="max-sm:w-full"
        onClick={() =>
          saveFile(`xks-proxy-${endpoint.prefix}.json`, `${JSON.stringify(issued, null, 2)}\n`, 'application/json')
        }
      >
        Download JSON
      </Button>
      <FileMode name={`xks-proxy-${endpoint.prefix}.json`} mode="600" />
    </div>
  </SecretOnceDialog>
);

export const EndpointCredentials = ({ endpoint }: { endpoint: Endpoint }) => {
  const client = useQueryClient();
  const path = `${endpointPath(endpoint.id)}/credentials`;
  const [adding, setAdding] = useState(false);
  const [issued, setIssued] = useState<ProxyConfiguration | null>(null);
  const [removing, setRemoving] = useState<EndpointCredential | null>(null);
  const full = endpoint.credentials.length >= 2;
  return (
    <Panel
      title="Credentials"
      description="Up to two, for rotation without an interruption. Add the new one, enter it in the cloud key service, then remove the old one."
      actions={
        <Button
          needs="endpoints:credentials"
          icon="plus"
          opens
          onClick={() => setAdding(true)}
          disabled={full}
          title={full ? 'Two are live. Remove one first.' : undefined}
        >
          Add credential
        </Button>
      }
      flush
    >
      {endpoint.credentials.length === 0 ? (
        <EmptyState title="No credential yet">
          The endpoint refuses every call without a credential. Add one and upload its JSON file in the cloud key
          service.
        </EmptyState>
      ) : (
        <DataTable
          caption="Credentials"
          rows={endpoint.credentials}
          rowKey={(credential) => credential.id}
          columns={[
            {
              key: 'id',
              header: 'Access key id',
              names: true,
              cell: (credential) => <Copyable value={credential.accessKeyId} label="access key id" />,
            },
            { key: 'created', header: 'Created', cell: (credential) => <Time value={credential.createdAt} /> },
            { key: 'used', header: 'Last used', cell: (credential) => <Time value={credential.lastUsedAt} distance /> },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (credential) => (
                <ActionMenu
                  label={`Actions on credential ${credential.accessKeyId}`}
                  actions={[
                    {
                      text: 'Remove',
                      needs: 'endpoints:credentials',
                      icon: 'trash',
                      danger: true,
                      onSelect: () => setRemoving(credential),
                    },
                  ]}
                />
              ),
            },
          ]}
        />
      )}
      {adding && (
        <FormDialog<ProxyConfiguration>
          title="Add a credential?"
          call={{ method: 'POST', path }}
          creates
          submitLabel="Add credential"
          onCancel={() => setAdding(false)}
          onDone={async (result) => {
            setAdding(false);
            setIssued(result);
            await client.invalidateQueries({ queryKey: [endpointsPath] });
          }}
        >
          {() => <p>Its secret access key is shown only once, with the JSON file for the cloud key service.</p>}
        </FormDialog>
      )}
      {issued !== null && <CredentialDialog endpoint={endpoint} issued={issued} onClose={() => setIssued(null)} />}
      {removing !== null && (
        <ConfirmDialog
          title="Remove this credential?"
          expected={removing.accessKeyId}
          expectedKind="access key id"
          call={{ method: 'DELETE', path: `${path}/${encodeURIComponent(removing.id)}` }}
          submitLabel="Remove credential"
          onCancel={() => setRemoving(null)}
          renews={[endpointsPath]}
          done={`Credential ${removing.accessKeyId} removed`}
        >
          <p>
            Requests signed with it will fail with <code>AuthenticationFailedException</code>. Last used:{' '}
            <Time value={removing.lastUsedAt} distance />.
          </p>
        </ConfirmDialog>
      )}
    </Panel>
  );
};

const meterEvery = 2_000;
const metered = 100;

/** Which credential has signed the newest requests. Renewed while it is shown. */
export const useSigners = (endpoint: Endpoint | undefined) =>
  useQuery({
    queryKey: [endpointsPath, endpoint?.id, 'signers'],
    queryFn: ({ signal }) =>
      send<ListPage<EndpointRequest>>(
        { method: 'GET', path: `${endpointPath(endpoint?.id ?? '')}/requests`, query: { limit: metered } },
        { signal },
      ),
    select: ({ items }) => {
      const signed = items.filter(({ credentialId }) => credentialId !== null);
      const of = (id: string): readonly EndpointRequest[] => signed.filter(({ credentialId }) => credentialId === id);
      return { total: signed.length, latest: items[0], of };
    },
    enabled: endpoint !== undefined,
    refetchInterval: meterEvery,
  });

export const SignersMeter = ({ endpoint }: { endpoint: Endpoint }) => {
  const signers = useSigners(endpoint).data;
  const byAge = endpoint.credentials.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
  return (
    <div className="space-y-3" role="status" aria-label="Credentials in use">
      {byAge.map((credential, index) => {
        const own = signers?.of(credential.id) ?? [];
        const total = signers?.total ?? 0;
        const newest = index === byAge.length - 1;
        return (
          <div key={credential.id}>
            <div className="flex flex-wrap items-baseline justify-between gap-x-4">
              <p className="min-w-0">
                <code className="break-all">{credential.accessKeyId}</code>{' '}
                {byAge.length > 1 && <span className="text-muted">{newest ? 'new credential' : 'old credential'}</span>}
              </p>
              <p className="text-muted tabular-nums">
                {own.length} of {total}
                {own[0] !== undefined && (
                  <>
                    , last <Time value={own[0].at} distance />
                  </>
                )}
              </p>
            </div>
            <meter
              min={0}
              max={Math.max(total, 1)}
              value={own.length}
              aria-label={`Requests signed with ${credential.accessKeyId}`}
              className="signers mt-1 h-2 w-full"
            />
          </div>
        );
      })}
      <p className="text-xs text-muted">
        Signed requests among the newest {metered}, updated every {meterEvery / 1000} seconds.
      </p>
    </div>
  );
};
