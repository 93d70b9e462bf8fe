// Starts the console in the page.

import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { nameTenantBy } from './api/client.ts';
import { notePresence } from './api/presence.ts';
import { createQueryClient } from './session/query-client.ts';
import { currentTenant } from './session/tenant.ts';
import { router } from './shell/router.tsx';
import { AnnounceProvider } from './ui/page/announce.tsx';

nameTenantBy(currentTenant);
for (const event of ['keydown', 'pointerdown', 'pointermove', 'wheel'])
  addEventListener(event, notePresence, { passive: true, capture: true });

const root = document.getElementById('root');
if (root === null) throw new Error('the page has no root element');

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={createQueryClient()}>
      <AnnounceProvider>
        <RouterProvider router={router} />
      </AnnounceProvider>
    </QueryClientProvider>
  </StrictMode>,
);
