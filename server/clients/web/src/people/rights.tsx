// What a user or token may do, and where, as a list.

import type { Right } from '../api/types.ts';

export const Rights = ({ rights }: { rights: readonly Right[] }) => (
  <ul className="grid gap-x-6 gap-y-1 sm:grid-cols-2 lg:grid-cols-3">
    {rights.map(({ permission, scope, tenantId }) => (
      <li key={`${permission} ${scope?.id ?? ''} ${tenantId ?? ''}`} className="wrap-anywhere">
        <code>{permission}</code>
        {scope !== null && <span className="text-muted"> for one {scope.kind}</span>}
        {scope === null && tenantId !== null && <span className="text-muted"> in one tenant</span>}
      </li>
    ))}
  </ul>
);
