// Rotation of an endpoint's credential without a gap: add a new one, enter it at the cloud, watch which one signs, remove the old one.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { Endpoint } from '../api/types.ts';
import { Async } from '../components/async.tsx';
import { EndpointCredentials, SignersMeter, useSigners } from '../components/endpoint-credentials.tsx';
import { EndpointTabs } from '../components/endpoint-tabs.tsx';
import { endpointPath, endpointsPath } from '../components/endpoints.ts';
import { Page } from '../components/page.tsx';
import { type SetUpStep, SetUpSteps } from '../components/steps.tsx';
import { Time } from '../components/time.tsx';

const route = getRouteApi('/endpoints/$id/credentials');

const Rotation = ({ endpoint }: { endpoint: Endpoint }) => {
  const signers = useSigners(endpoint).data;
  const byAge = endpoint.credentials.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
  const [old, fresh] = byAge;
  const two = byAge.length > 1;
  const freshSigns = fresh !== undefined && (signers?.of(fresh.id).length ?? 0) > 0;
  const oldShare = old === undefined || signers === undefined ? 0 : signers.of(old.id).length;
  const steps: readonly SetUpStep[] = [
    {
      title: 'Add the new credential',
      state: two ? 'done' : 'next',
      children: (
        <p className="text-muted">
          {two
            ? 'Two are live: requests signed with either are served.'
            : 'Below. It is shown once, with the file that the console of the cloud takes. The old one goes on.'}
        </p>
      ),
    },
    {
      title: 'Enter it at the cloud key service',
      state: !two ? 'later' : freshSigns ? 'done' : 'waiting',
      children: two ? (
        <div className="space-y-2">
          <p className="text-muted">
            Edit the proxy authentication credential of the external key store there, with the file or with:
          </p>
          <pre className="rounded-md bg-sunken p-3 text-xs wrap-anywhere whitespace-pre-wrap">
            aws kms update-custom-key-store --custom-key-store-id cks-… \{'\n'}
            {'  '}--xks-proxy-authentication-credential AccessKeyId={fresh?.accessKeyId},RawSecretAccessKey=…
          </pre>
        </div>
      ) : null,
    },
    {
      title: 'Watch which one signs',
      state: !two ? 'later' : freshSigns && oldShare === 0 ? 'done' : freshSigns ? 'waiting' : 'later',
      children: endpoint.credentials.length === 0 ? null : <SignersMeter endpoint={endpoint} />,
    },
    {
      title: 'Remove the old one',
      state: !two ? 'later' : freshSigns && oldShare === 0 ? 'next' : 'later',
      children: two && (
        <p className="text-muted">
          When it has been silent for as long as anything of the cloud may still use it; seven days are on the safe
          side. It was last used: <Time value={old?.lastUsedAt} distance />.
        </p>
      ),
    },
  ];
  return (
    <>
      <SetUpSteps steps={steps} />
      <EndpointCredentials endpoint={endpoint} />
    </>
  );
};

export const EndpointCredentialsPage = () => {
  const { id } = route.useParams();
  const query = useQuery({
    queryKey: [endpointsPath, id],
    queryFn: ({ signal }) => send<Endpoint>({ method: 'GET', path: endpointPath(id) }, { signal }),
    refetchInterval: 5_000,
  });
  return (
    <Page
      title={`Credentials of ${query.data?.name ?? 'the endpoint'}`}
      description="Rotated every quarter, without a gap: for a while both hold."
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
    >
      <EndpointTabs id={id} />
      <Async query={query} lines={6}>
        {(endpoint) => <Rotation endpoint={endpoint} />}
      </Async>
    </Page>
  );
};
