// The views of the audit log.

import { Tabs } from '../ui/page/tabs.tsx';

export const AuditTabs = () => (
  <Tabs
    label="Audit log"
    tabs={[
      { text: 'Records', to: '/audit' },
      { text: 'Key migration', to: '/audit/migrations' },
      { text: 'Verification', to: '/audit/verification' },
      { text: 'Sinks', to: '/audit/sinks' },
    ]}
  />
);
