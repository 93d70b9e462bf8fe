// The way from a new service to what it is for: a cloud, or a database. Shown while there is none.

import { Link } from '@tanstack/react-router';
import { applicationsPath, endpointsPath } from '../../api/paths.ts';
import type { Application, Endpoint } from '../../api/types.ts';
import { useEvery } from '../../session/every.ts';
import { useMay } from '../../session/may.ts';
import { buttonClass } from '../../ui/page/button.tsx';
import { Panel } from '../../ui/page/page.tsx';

export const ConnectLinks = () => {
  const may = useMay();
  const endpoints = useEvery<Endpoint>(endpointsPath, 'endpoints:read');
  const applications = useEvery<Application>(applicationsPath, 'applications:read');
  const wantsCloud = endpoints?.length === 0 && may('endpoints:manage', { scoped: false });
  const wantsDatabase = applications?.length === 0 && may('applications:manage', { scoped: false });
  if (!wantsCloud && !wantsDatabase) return null;
  return (
    <Panel title="Connect what you protect">
      <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
        <p className="max-w-prose min-w-0 flex-1 basis-64">
          One form creates what is missing: vault, key, endpoint and credential of a cloud, or group and registration of
          a database.
        </p>
        <div className="flex flex-wrap gap-2">
          {wantsCloud && (
            <Link to="/connect/cloud" className={buttonClass()}>
              Connect a cloud
            </Link>
          )}
          {wantsDatabase && (
            <Link to="/connect/database" className={buttonClass()}>
              Register a database
            </Link>
          )}
        </div>
      </div>
    </Panel>
  );
};
