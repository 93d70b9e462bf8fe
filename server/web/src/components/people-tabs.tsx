// The views of people.

import { Tabs } from './tabs.tsx';

export const PeopleTabs = () => (
  <Tabs
    label="People"
    tabs={[
      { text: 'Users', to: '/users' },
      { text: 'Sessions', to: '/sessions' },
    ]}
  />
);
