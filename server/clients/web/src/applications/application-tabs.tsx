// The views of one TDE application.

import { Tabs } from '../ui/page/tabs.tsx';

export const ApplicationTabs = ({ id }: { id: string }) => (
  <Tabs
    label="TDE application"
    tabs={[
      { text: 'Application', to: '/tde/applications/$id', params: { id } },
      { text: 'Connect', to: '/tde/applications/$id/setup', params: { id } },
      { text: 'Runbooks', to: '/tde/applications/$id/runbooks', params: { id } },
    ]}
  />
);
