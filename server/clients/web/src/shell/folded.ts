// Which groups of the navigation are folded. The choice is kept in this browser only.

import { useSyncExternalStore } from 'react';

const storageKey = 'dke-folded';
const watchers = new Set<() => void>();

const stored = (): ReadonlySet<string> => {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '[]');
    return new Set(Array.isArray(found) ? found.filter((each) => typeof each === 'string') : []);
  } catch {
    return new Set();
  }
};
let folded = stored();

const watch = (tell: () => void): (() => void) => {
  watchers.add(tell);
  return () => watchers.delete(tell);
};

/** Whether a group is folded, and what folds or unfolds it. */
export const useFolded = (group: string): [isFolded: boolean, fold: (on: boolean) => void] => {
  const isFolded = useSyncExternalStore(watch, () => folded.has(group));
  const fold = (on: boolean): void => {
    folded = new Set(on ? [...folded, group] : [...folded].filter((each) => each !== group));
    try {
      localStorage.setItem(storageKey, JSON.stringify([...folded]));
    } catch {
      // The choice then applies until the page is left.
    }
    for (const tell of watchers) tell();
  };
  return [isFolded, fold];
};
