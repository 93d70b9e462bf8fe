// How times are shown: in this browser's zone or in UTC, and "3 minutes ago" or exactly. The exact
// time of a row is also its tooltip; this switch reaches it by keyboard and touch, for all rows at
// once and without a tab stop in each. The choice is kept in this browser only.

import { ToggleGroup } from 'radix-ui';
import { useSyncExternalStore } from 'react';
import type { Zone } from './moments.ts';

const storageKey = 'dke-zone';
const watchers = new Set<() => void>();

const stored = (): Zone => {
  try {
    return localStorage.getItem(storageKey) === 'utc' ? 'utc' : 'local';
  } catch {
    return 'local';
  }
};
let zone = stored();

const chooseZone = (chosen: Zone): void => {
  zone = chosen;
  try {
    localStorage.setItem(storageKey, chosen);
  } catch {
    // The choice then applies until the page is left.
  }
  for (const watch of watchers) watch();
};
const exactKey = 'dke-exact-times';
const storedExact = (): boolean => {
  try {
    return localStorage.getItem(exactKey) === 'yes';
  } catch {
    return false;
  }
};
let isExact = storedExact();
const chooseExact = (on: boolean): void => {
  isExact = on;
  try {
    localStorage.setItem(exactKey, on ? 'yes' : 'no');
  } catch {
    // The choice then applies until the page is left.
  }
  for (const watch of watchers) watch();
};
const watchZone = (watch: () => void): (() => void) => {
  watchers.add(watch);
  return () => watchers.delete(watch);
};

export const useZone = (): Zone => useSyncExternalStore(watchZone, () => zone);

/** Whether "3 minutes ago" is shown as the exact time. */
export const useExactTimes = (): boolean => useSyncExternalStore(watchZone, () => isExact);

/** The name of a zone, for a person: `UTC`, `Europe/Berlin`. */
export const zoneName = (of: Zone): string =>
  of === 'utc' ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone;

const zones: readonly (readonly [Zone, string])[] = [
  ['local', 'Local'],
  ['utc', 'UTC'],
];

export const ZoneToggle = () => (
  <ToggleGroup.Root
    type="single"
    value={useZone()}
    onValueChange={(value) => {
      const chosen = zones.find(([candidate]) => candidate === value);
      if (chosen !== undefined) chooseZone(chosen[0]);
    }}
    aria-label="Time zone"
    className="inline-flex rounded-md border border-line bg-sunken p-0.5"
  >
    {zones.map(([choice, text]) => (
      <ToggleGroup.Item
        key={choice}
        value={choice}
        aria-label={`Times in ${choice === 'utc' ? text : `local time (${zoneName(choice)})`}`}
        title={zoneName(choice)}
        className="inline-flex h-7 items-center justify-center rounded px-2 text-xs text-muted hover:text-ink data-[state=on]:bg-surface data-[state=on]:text-ink data-[state=on]:shadow-raised"
      >
        {text}
      </ToggleGroup.Item>
    ))}
  </ToggleGroup.Root>
);

export const ExactTimesToggle = () => {
  const on = useExactTimes();
  return (
    <button
      type="button"
      aria-pressed={on}
      title="Show exact times in place of “3 minutes ago”"
      onClick={() => chooseExact(!on)}
      className="inline-flex h-8 items-center rounded-md border border-line bg-sunken px-2 text-xs text-muted hover:text-ink aria-pressed:bg-surface aria-pressed:text-ink aria-pressed:shadow-raised"
    >
      Exact times
    </button>
  );
};
