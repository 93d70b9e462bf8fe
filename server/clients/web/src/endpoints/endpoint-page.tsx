// The frame of the pages that connect an endpoint. It reads the endpoint again while you work in
// the cloud.

import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { send } from '../api/client.ts';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type { Endpoint } from '../api/types.ts';
import { Async } from '../ui/page/async.tsx';
import { Page } from '../ui/page/page.tsx';
import { EndpointCredentials } from './credential-list.tsx';
import { EndpointTabs } from './endpoint-tabs.tsx';

export const EndpointStepsPage = ({
  id,
  title,
  description,
  children,
}: {
  id: string;
  /** Title for the endpoint's name; the name is undefined while the endpoint is being read. */
  title: (name: string | undefined) => string;
  description: string;
  /** The steps; its credentials stand below them. */
  children: (endpoint: Endpoint) => ReactNode;
}) => {
  const query = useQuery({
    queryKey: [endpointsPath, id],
    queryFn: ({ signal }) => send<Endpoint>({ method: 'GET', path: endpointPath(id) }, { signal }),
    refetchInterval: 5_000,
  });
  return (
    <Page
      title={title(query.data?.name)}
      description={description}
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
    >
      <EndpointTabs id={id} />
      <Async query={query} lines={6}>
        {(endpoint) => (
          <>
            {children(endpoint)}
            <EndpointCredentials endpoint={endpoint} />
          </>
        )}
      </Async>
    </Page>
  );
};
