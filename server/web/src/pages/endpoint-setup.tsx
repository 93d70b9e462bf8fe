// Connecting a cloud to a new endpoint: its credential as the file that the cloud's console imports, what to enter there, and the first
// call, which shows here by itself.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { Endpoint, ExternalKeyStore } from '../api/types.ts';
import { buttonClass } from '../components/button.tsx';
import { Copyable } from '../components/copy.tsx';
import { useSigners } from '../components/endpoint-credentials.tsx';
import { EndpointStepsPage } from '../components/endpoint-page.tsx';
import type { ListPage } from '../components/list-view.tsx';
import { Facts } from '../components/page.tsx';
import { type SetUpStep, SetUpSteps } from '../components/steps.tsx';
import { Time } from '../components/time.tsx';

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
  const steps: readonly SetUpStep[] = [
    {
      title: 'The endpoint is made',
      state: 'done',
      children: (
        <Facts
          items={[
            ['XksProxyUriEndpoint', <Copyable key="uri" value={location.origin} label="proxy URI endpoint" />],
            ['XksProxyUriPath', <Copyable key="path" value={endpoint.uriPath} label="proxy URI path" />],
            ['XksKeyId (case-sensitive)', <Copyable key="key" value={endpoint.keyId} label="external key id" />],
          ]}
        />
      ),
    },
    {
      title: 'Give it a credential',
      state: hasCredential ? 'done' : 'next',
      children: (
        <p className="text-muted">
          {hasCredential
            ? `${endpoint.credentials[0]?.accessKeyId ?? ''} is live. Its file was offered once; a lost one is replaced by a second credential.`
            : 'Add one below: it is shown once, with the file that the console of the cloud imports.'}
        </p>
      ),
    },
    {
      title: 'Create the external key store in the cloud, and connect it',
      state: first !== undefined ? 'done' : hasCredential ? 'next' : 'later',
      children: (
        <p className="max-w-prose text-muted">
          In AWS KMS: Custom key stores, External key stores, Create; public endpoint connectivity; upload the proxy
          configuration file; then Connect. The first thing that it does is a health call.
        </p>
      ),
    },
    {
      title: first === undefined ? 'Waiting for the first call' : 'The first call is there',
      state: first !== undefined ? 'done' : hasCredential ? 'waiting' : 'later',
      children:
        first === undefined ? (
          <div role="status" className="space-y-2 text-muted">
            <p>It shows here by itself.</p>
            {hasCredential && (
              <p>
                Nothing comes?{' '}
                <Link to="/endpoints/$id/diagnostics" params={{ id: endpoint.id }} className="link">
                  The diagnostics
                </Link>{' '}
                try every layer from here to the cloud's side.
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
      title: 'Have its connection watched',
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
  return <SetUpSteps steps={steps} />;
};

export const EndpointSetUpPage = () => {
  const { id } = route.useParams();
  return (
    <EndpointStepsPage
      id={id}
      title={(name) => `Connect ${name ?? 'an endpoint'}`}
      description="From the endpoint to the first call of the cloud key service. Leave at any time: it goes on from what is there."
    >
      {(endpoint) => <Steps endpoint={endpoint} />}
    </EndpointStepsPage>
  );
};
