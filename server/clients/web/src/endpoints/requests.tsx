// The request log of all key store endpoints, including deleted ones and requests that belong to
// none.

import { getRouteApi } from '@tanstack/react-router';
import { Page } from '../ui/page/page.tsx';
import { RequestLog } from './request-log.tsx';
import { RequestTabs } from './request-tabs.tsx';

const route = getRouteApi('/requests');

export const RequestsPage = () => {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page
      title="Request log"
      description="Requests of cloud key services to all key store endpoints, including requests whose path belongs to none."
    >
      <RequestTabs />
      <RequestLog
        filters={filters}
        onFilters={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
      />
    </Page>
  );
};
