// What the person who is signed in may do: navigation and actions follow it, so that a page offers
// nothing that only refuses. For display only: the service checks each call.

import { useQuery } from '@tanstack/react-query';
import type { Permission } from '../api/types.ts';
import { sessionQuery } from './current-session.ts';

/** Where a permission is asked for. */
interface Where {
  /**
   * Whether a permission for single resources is enough, which is the default; false for what
   * concerns no resource that exists.
   */
  readonly scoped?: boolean;
  /** Only for the whole platform: what concerns the service, and no tenant. */
  readonly platform?: boolean;
}

/**
 * A question to the session: whether it has a permission, in any tenant. Until the session is
 * known, the answer is no. It watches the session and does not read it: the frame does.
 */
/** The tenant that requests without a named one act in: what lists show. */
export const useTenant = (): string | undefined => useQuery({ ...sessionQuery, enabled: false }).data?.tenantId;

export const useMay = (): ((permission: Permission, where?: Where) => boolean) => {
  const rights = useQuery({ ...sessionQuery, enabled: false }).data?.permissions ?? [];
  return (permission, { scoped = true, platform = false } = {}) =>
    rights.some(
      ({ permission: right, scope, tenantId }) =>
        right === permission && (platform ? scope === null && tenantId === null : scoped || scope === null),
    );
};
