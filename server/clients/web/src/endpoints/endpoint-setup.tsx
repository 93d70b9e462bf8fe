// Connecting a cloud to a new endpoint: its credential as the file that the cloud's console
// imports, what to enter there, and the first call, which this page shows automatically.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { Endpoint, ExternalKeyStore } from '../api/types.ts';
import { buttonClass } from '../ui/page/button.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { Facts } from '../ui/page/page.tsx';
import { type SetupStep, SetupSteps } from '../ui/page/steps.tsx';
import { Time } from '../ui/page/time.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';
import { useSigners } from './credential-list.tsx';
import { EndpointStepsPage } from './endpoint-page.tsx';
import { UriEndpoint } from './uri-endpoint.tsx';

const route = getRouteApi('/endpoints/$id/setup');

const Steps = ({ endpoint }: { endpoint: Endpoint }) => {
  const signers = useSigners(endpoint).data;
  const stores = useQuery({
    queryKey: ['/api/external-key-stores', 'choices'],
    queryFn: ({ signal }) =>
      send<ListPage<ExternalKeyStore>>(
        { method: 'GET', path: '/api/external-key-stores', query: { limit: 1000 } },
        { signal },
      ),
    refetchInterval: 10_000,
  }).data?.items;
  const hasCredential = endpoint.credentials.length > 0;
  const first = signers?.latest;
  const store = stores?.find(({ endpointId }) => endpointId === endpoint.id);
  const steps: readonly SetupStep[] = [
    {
      title: 'The endpoint is created',
      state: 'done',
      children: (
        <Facts
          items={[
            ['XksProxyUriEndpoint', <UriEndpoint key="uri" value={endpoint.uriEndpoint} />],
            ['XksProxyUriPath', <Copyable key="path" value={endpoint.uriPath} label="proxy URI path" />],
            ['XksKeyId (case-sensitive)', <Copyable key="key" value={endpoint.keyId} label="external key id" />],
          ]}
        />
      ),
    },
    {
      title: 'Add a credential',
      state: hasCredential ? 'done' : 'next',
      children: (
        <p className="text-muted">
          {hasCredential
            ? `${endpoint.credentials[0]?.accessKeyId ?? ''} is live. Its file was shown only once. If it is lost, add a second credential.`
            : "Add one below. It is shown only once, with the file that the cloud's console imports."}
        </p>
      ),
    },
    {
      title: 'Create the external key store in the cloud and connect it',
      state: first !== undefined ? 'done' : hasCredential ? 'next' : 'later',
      children: (
        <p className="max-w-prose text-muted">
          In AWS KMS, open Custom key stores, then External key stores, and create one. Choose public endpoint
          connectivity, upload the proxy configuration file, then connect it. The first call is a health check.
        </p>
      ),
    },
    {
      title: first === undefined ? 'Waiting for the first call' : 'First call received',
      state: first !== undefined ? 'done' : hasCredential ? 'waiting' : 'later',
      children:
        first === undefined ? (
          <div role="status" className="space-y-2 text-muted">
            <p>This page updates automatically.</p>
            {hasCredential && (
              <p>
                No call?{' '}
                <Link to="/endpoints/$id/diagnostics" params={{ id: endpoint.id }} className="link">
                  The diagnostics
                </Link>{' '}
                check every layer from here to the cloud.
              </p>
            )}
          </div>
        ) : (
          <p role="status">
            <code>{first.operation}</code> was answered with {first.status}
            {first.errorName !== null && <code> {first.errorName}</code>}, <Time value={first.at} distance />.{' '}
            {first.errorName !== null && (
              <Link to="/endpoints/$id/diagnostics" params={{ id: endpoint.id }} className="link">
                See why
              </Link>
            )}
          </p>
        ),
    },
    {
      title: 'Monitor its connection',
      state: store !== undefined ? 'done' : first !== undefined ? 'next' : 'later',
      children:
        store === undefined ? (
          <Link to="/external-key-stores" className={buttonClass()}>
            Register its custom key store id
          </Link>
        ) : (
          <p className="text-muted">
            {store.name}, <code>{store.customKeyStoreId}</code>
          </p>
        ),
    },
  ];
  return <SetupSteps steps={steps} />;
};

export const EndpointSetupPage = () => {
  const { id } = route.useParams();
  return (
    <EndpointStepsPage
      id={id}
      title={(name) => `Connect ${name ?? 'an endpoint'}`}
      description="From the endpoint to the first call of the cloud key service. You can leave at any time. Progress is saved."
    >
      {(endpoint) => <Steps endpoint={endpoint} />}
    </EndpointStepsPage>
  );
};
