// The views of notifications. Targets are the platform's.

import { useMay } from '../../app/may.ts';
import { Tabs } from '../page/tabs.tsx';

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
