// The views of users.

import { Tabs } from '../ui/page/tabs.tsx';

export const PeopleTabs = () => (
  <Tabs
    label="Users"
    tabs={[
      { text: 'Users', to: '/users' },
      { text: 'Sessions', to: '/sessions' },
    ]}
  />
);
