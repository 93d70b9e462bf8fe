// The tenant that the pages act in. Users with access to several choose it, for this tab. Null: the
// caller's own, or the whole platform where the caller has that right.

import { useSyncExternalStore } from 'react';

const storageKey = 'dke-tenant';
const listeners = new Set<() => void>();

const read = (): string | null => {
  try {
    return sessionStorage.getItem(storageKey);
  } catch {
    return null;
  }
};
let current: string | null = read();

export const currentTenant = (): string | null => current;

export const chooseTenant = (id: string | null): void => {
  current = id;
  try {
    if (id === null) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, id);
  } catch {
    // The choice then applies until the page is left.
  }
  for (const listener of listeners) listener();
};

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const useTenant = (): string | null => useSyncExternalStore(subscribe, currentTenant);
