// What programs need: their tokens, and what they can call.

import { useMay } from '../session/may.ts';
import { Tabs } from '../ui/page/tabs.tsx';

export const TokenTabs = () => {
  const may = useMay();
  return (
    <Tabs
      label="API"
      tabs={[
        ...(may('tokens:read') ? [{ text: 'API tokens', to: '/tokens' } as const] : []),
        { text: 'API reference', to: '/reference' },
      ]}
    />
  );
};
