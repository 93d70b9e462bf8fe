// The role table as fronts ask it: whether a caller may, what they may, and what there is to give.

import { ServiceError } from '../base/errors.ts';
import { effectivePermissions, isAllowed, roleNames, rolesWith, rowOf } from '../domain/access.ts';
import type { AccessOperations } from './index.ts';

export const access: AccessOperations = {
  check: (grants, permission, tenantId, scope) => {
    if (isAllowed(grants, permission, tenantId, scope)) return;
    throw new ServiceError('forbidden', `this needs the permission ${permission}`, {
      hint: `roles that have it: ${rolesWith(permission).join(', ')}; GET /api/session (dke token whoami) shows what you may do`,
    });
  },
  effective: effectivePermissions,
  roles: () =>
    roleNames.map((role) => {
      const { description, permissions, scoped = false, reach = null } = rowOf(role);
      return { role, description, scoped, reach, permissions };
    }),
};
