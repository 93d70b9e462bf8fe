// The views of the request log. Its verification is the platform's.

import { useMay } from '../session/may.ts';
import { Tabs } from '../ui/page/tabs.tsx';

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
