// The zone in which times are shown and entered: this browser's, or UTC. The choice is kept in this
// browser only.

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
const watchZone = (watch: () => void): (() => void) => {
  watchers.add(watch);
  return () => watchers.delete(watch);
};

export const useZone = (): Zone => useSyncExternalStore(watchZone, () => zone);

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
