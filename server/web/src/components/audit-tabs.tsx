// The three views of the audit log.

import { Tabs } from './tabs.tsx';

export const AuditTabs = () => (
  <Tabs
    label="Audit log"
    tabs={[
      { text: 'Records', to: '/audit' },
      { text: 'Verification', to: '/audit/verification' },
      { text: 'Sinks', to: '/audit/sinks' },
    ]}
  />
);
