// The views of users.

import { Tabs } from '../page/tabs.tsx';

export const PeopleTabs = () => (
  <Tabs
    label="Users"
    tabs={[
      { text: 'Users', to: '/users' },
      { text: 'Sessions', to: '/sessions' },
    ]}
  />
);
