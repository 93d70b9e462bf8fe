// The views of notifications. Targets are the platform's.

import { useMay } from '../session/may.ts';
import { Tabs } from '../ui/page/tabs.tsx';

export const NotificationTabs = () =>
  useMay()('notifications:read', { platform: true }) && (
    <Tabs
      label="Notifications"
      tabs={[
        { text: 'Notifications', to: '/notifications' },
        { text: 'Targets', to: '/notifications/targets' },
      ]}
    />
  );
