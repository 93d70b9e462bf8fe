// Tenants: everything else belongs to one. Their life is one table, state x event; pure. What a
// state means for what is in the tenant is in `isStopped`; when a deleted one is purged is the
// service's configuration (`purgeAt`).

import type { Integrity } from './vault.ts';

export const tenantStates = ['active', 'suspended', 'deleted', 'purged'] as const;
export type TenantState = (typeof tenantStates)[number];

export const tenantEvents = ['rename', 'suspend', 'resume', 'delete', 'restore', 'purge'] as const;
export type TenantEvent = (typeof tenantEvents)[number];

/**
 * A cell names the next state; null refuses the event. A cell that names its own row's state
 * changes nothing, or only the name.
 */
export const tenantLifecycle = {
  active: {
    rename: 'active',
    suspend: 'suspended',
    resume: 'active',
    delete: 'deleted',
    restore: null,
    purge: null,
  },
  suspended: {
    rename: 'suspended',
    suspend: 'suspended',
    resume: 'active',
    delete: 'deleted',
    restore: null,
    purge: null,
  },
  // Restoring goes back to where it was deleted from: see nextTenantState.
  deleted: { rename: null, suspend: null, resume: null, delete: 'deleted', restore: 'active', purge: 'purged' },
  purged: { rename: null, suspend: null, resume: null, delete: null, restore: null, purge: null },
} as const satisfies Record<TenantState, Record<TenantEvent, TenantState | null>>;

export interface Tenant {
  readonly id: string;
  /** Unique among those that are not purged; compared byte for byte. */
  readonly name: string;
  readonly state: TenantState;
  readonly createdAt: number;
  /**
   * Set by suspend, cleared by resume; kept through deletion, so that restoring does not free what
   * was stopped before.
   */
  readonly suspendedAt: number | null;
  readonly deletedAt: number | null;
  /** Until then a deleted tenant can be restored; from then on it is purged. */
  readonly purgeAt: number | null;
  readonly purgedAt: number | null;
  /** After the purge: nothing of it is left but its tombstones. */
  readonly clearedAt: number | null;
  /** After the purge: the service knows no copy that opens one of its keys (copies.ts). */
  readonly unrecoverableAt: number | null;
  /**
   * 'tampered': a stored column was changed from outside; everything in the tenant is stopped and
   * an alarm was recorded.
   */
  readonly integrity: Integrity;
}

/** The state after the event, or null when the event is refused in this state. */
export const nextTenantState = (
  { state, suspendedAt }: Pick<Tenant, 'state' | 'suspendedAt'>,
  event: TenantEvent,
): TenantState | null => {
  const next: TenantState | null = tenantLifecycle[state][event];
  return event === 'restore' && next === 'active' && suspendedAt !== null ? 'suspended' : next;
};

/**
 * Why nothing in the tenant is done now, neither for databases and clouds nor for its own people;
 * null when all is.
 */
export const isStopped = ({
  state,
  integrity,
}: Pick<Tenant, 'state' | 'integrity'>): 'suspended' | 'deleted' | null => {
  if (state === 'deleted' || state === 'purged') return 'deleted';
  return state === 'suspended' || integrity !== 'ok' ? 'suspended' : null;
};

/**
 * Asks for what is in any tenant: for the service's own work, and for those who have the right for
 * the whole platform.
 */
export const everyTenant: unique symbol = Symbol('every tenant');

/**
 * In which tenants a look-up finds something: in one, by its id, or in every one. There is no
 * default: each caller says it.
 */
export type TenantScope = string | typeof everyTenant;
