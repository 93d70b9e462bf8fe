// The views of the request log. Its verification is the platform's.

import { useMay } from '../../app/may.ts';
import { Tabs } from '../page/tabs.tsx';

export const RequestTabs = () =>
  useMay()('audit:read', { platform: true }) && (
    <Tabs
      label="Request log"
      tabs={[
        { text: 'Requests', to: '/requests' },
        { text: 'Verification', to: '/requests/verification' },
      ]}
    />
  );
