// The life of a tenant: every state with every event, and what a state means for what is in the
// tenant.
import { describe, expect, test } from 'vitest';
import { isStopped, nextTenantState, tenantEvents, tenantStates } from '../../../server/domain/tenant.ts';

/** The table again, as sentences: what is not here is refused. */
const allowed: Readonly<Record<string, string>> = {
  'active rename': 'active',
  'active suspend': 'suspended',
  'active resume': 'active',
  'active delete': 'deleted',
  'suspended rename': 'suspended',
  'suspended suspend': 'suspended',
  'suspended resume': 'active',
  'suspended delete': 'deleted',
  'deleted delete': 'deleted',
  'deleted restore': 'active',
  'deleted purge': 'purged',
};

describe('the life of a tenant', () => {
  const cells = tenantStates.flatMap((state) => tenantEvents.map((event) => [state, event] as const));
  test.each(cells)('%s, then %s', (state, event) => {
    expect(nextTenantState({ state, suspendedAt: null }, event)).toBe(allowed[`${state} ${event}`] ?? null);
  });
  test('what was suspended before it was deleted is suspended when it is restored', () => {
    expect(nextTenantState({ state: 'deleted', suspendedAt: 7 }, 'restore')).toBe('suspended');
    expect(nextTenantState({ state: 'suspended', suspendedAt: 7 }, 'resume')).toBe('active');
  });
  test('only what is deleted is purged, and nothing follows a purge', () => {
    expect(tenantStates.filter((state) => nextTenantState({ state, suspendedAt: null }, 'purge') !== null)).toEqual([
      'deleted',
    ]);
    for (const event of tenantEvents) expect(nextTenantState({ state: 'purged', suspendedAt: null }, event)).toBeNull();
  });
  test('everything in it is served while it is active and its row is sound, and nothing otherwise', () => {
    const stopped = tenantStates.map((state) => isStopped({ state, integrity: 'ok' }));
    expect(stopped).toEqual([null, 'suspended', 'deleted', 'deleted']);
    for (const state of tenantStates) expect(isStopped({ state, integrity: 'tampered' })).not.toBeNull();
  });
});
