// The views of one key store endpoint.

import { Tabs } from '../ui/page/tabs.tsx';

export const EndpointTabs = ({ id }: { id: string }) => (
  <Tabs
    label="Endpoint"
    tabs={[
      { text: 'Endpoint', to: '/endpoints/$id', params: { id } },
      { text: 'Connect', to: '/endpoints/$id/setup', params: { id } },
      { text: 'Credentials', to: '/endpoints/$id/credentials', params: { id } },
      { text: 'Rules', to: '/endpoints/$id/rules', params: { id } },
      { text: 'Diagnostics', to: '/endpoints/$id/diagnostics', params: { id } },
    ]}
  />
);
