// The views of one key store endpoint.

import { Tabs } from './tabs.tsx';

export const EndpointTabs = ({ id }: { id: string }) => (
  <Tabs
    label="Endpoint"
    tabs={[
      { text: 'Endpoint', to: '/endpoints/$id', params: { id } },
      { text: 'Diagnostics', to: '/endpoints/$id/diagnostics', params: { id } },
    ]}
  />
);
