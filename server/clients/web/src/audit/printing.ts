// Whether the page is being printed: then it has all rows that were loaded, and no distances of
// time.

import { useSyncExternalStore } from 'react';

const watchPrinting = (watch: () => void): (() => void) => {
  const begin = (): void => {
    printedAt = Date.now();
    watch();
  };
  const end = (): void => {
    printedAt = null;
    watch();
  };
  window.addEventListener('beforeprint', begin);
  window.addEventListener('afterprint', end);
  return () => {
    window.removeEventListener('beforeprint', begin);
    window.removeEventListener('afterprint', end);
  };
};
let printedAt: number | null = null;

/** When printing began, in milliseconds; null: this is the screen. */
export const usePrintedAt = (): number | null => useSyncExternalStore(watchPrinting, () => printedAt);
