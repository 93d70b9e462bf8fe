// Rotation of an endpoint's credential without an interruption: add a new one, enter it in the
// cloud, check which one is in use, remove the old one.

import { getRouteApi } from '@tanstack/react-router';
import type { Endpoint } from '../api/types.ts';
import { type SetupStep, SetupSteps } from '../ui/page/steps.tsx';
import { Time } from '../ui/page/time.tsx';
import { SignersMeter, useSigners } from './credential-list.tsx';
import { EndpointStepsPage } from './endpoint-page.tsx';

const route = getRouteApi('/endpoints/$id/credentials');

const Rotation = ({ endpoint }: { endpoint: Endpoint }) => {
  const signers = useSigners(endpoint).data;
  const byAge = endpoint.credentials.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
  const [old, fresh] = byAge;
  const two = byAge.length > 1;
  const freshSigns = fresh !== undefined && (signers?.of(fresh.id).length ?? 0) > 0;
  const oldShare = old === undefined || signers === undefined ? 0 : signers.of(old.id).length;
  const steps: readonly SetupStep[] = [
    {
      title: 'Add the new credential',
      state: two ? 'done' : 'next',
      children: (
        <p className="text-muted">
          {two
            ? 'Two are live. Requests signed with either are accepted.'
            : "Add it below. It is shown only once, with the file for the cloud's console. The old one stays valid."}
        </p>
      ),
    },
    {
      title: 'Enter it in the cloud key service',
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
      title: 'Check which one is in use',
      state: !two ? 'later' : freshSigns && oldShare === 0 ? 'done' : freshSigns ? 'waiting' : 'later',
      children: endpoint.credentials.length === 0 ? null : <SignersMeter endpoint={endpoint} />,
    },
    {
      title: 'Remove the old one',
      state: !two ? 'later' : freshSigns && oldShare === 0 ? 'next' : 'later',
      children: two && (
        <p className="text-muted">
          Remove it when nothing in the cloud uses it any longer. We recommend seven days without use. Last used:{' '}
          <Time value={old?.lastUsedAt} distance />.
        </p>
      ),
    },
  ];
  return <SetupSteps steps={steps} />;
};

export const EndpointCredentialsPage = () => {
  const { id } = route.useParams();
  return (
    <EndpointStepsPage
      id={id}
      title={(name) => `Credentials of ${name ?? 'the endpoint'}`}
      description="Rotate them every quarter. Both are valid until you remove the old one."
    >
      {(endpoint) => <Rotation endpoint={endpoint} />}
    </EndpointStepsPage>
  );
};
