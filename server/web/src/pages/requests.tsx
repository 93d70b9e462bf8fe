// The request log of all key store endpoints, including deleted ones and requests that belong to
// none.

import { getRouteApi } from '@tanstack/react-router';
import { RequestLog } from '../components/endpoints/request-log.tsx';
import { RequestTabs } from '../components/endpoints/request-tabs.tsx';
import { Page } from '../components/page/page.tsx';

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
