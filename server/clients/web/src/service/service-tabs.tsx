// The views of the service itself, for those who may see it.

import { useMay } from '../session/may.ts';
import { Tabs } from '../ui/page/tabs.tsx';

export const ServiceTabs = () => {
  const may = useMay();
  return (
    <Tabs
      label="Service"
      tabs={[
        { text: 'State', to: '/service' },
        { text: 'Scheduled jobs', to: '/service/jobs' },
        ...(may('root:read', { platform: true }) ? [{ text: 'Keys', to: '/service/keys' } as const] : []),
        { text: 'Settings', to: '/settings' },
      ]}
    />
  );
};
