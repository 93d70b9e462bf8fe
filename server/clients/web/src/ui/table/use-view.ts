// The view of the list that is the last thing on its page, in the address; the density is also the
// person's own.

import { useMemo } from 'react';
import { useFragment } from '../../session/use-fragment.ts';
import { readView, type View, viewWords } from './view.ts';

const densityKey = 'dke-density';

/** A browser may refuse to keep anything: then the density is the address's alone. */
const readUsual = (): string | null => {
  try {
    return localStorage.getItem(densityKey);
  } catch {
    return null;
  }
};
const keepUsual = (density: string): void => {
  try {
    localStorage.setItem(densityKey, density);
  } catch {
    // The address has it.
  }
};

export const useView = (): readonly [View, (change: Partial<View>) => void] => {
  const [fragment, setWords] = useFragment();
  const view = useMemo(() => readView(fragment, readUsual()), [fragment]);
  const change = (part: Partial<View>): void => {
    if (part.compact !== undefined) keepUsual(part.compact ? 'compact' : 'comfortable');
    setWords(viewWords({ ...view, ...part }, readUsual()));
  };
  return [view, change];
};
