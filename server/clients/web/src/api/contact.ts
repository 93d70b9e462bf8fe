// Whether the service answers this page: every call notes it, and the frame asks when nothing else
// does. What a page shows while no answer comes is from before, and must not look like the present.

let heardAt = Date.now();
let lostAt: number | null = null;
const watchers = new Set<() => void>();

const become = (next: number | null): void => {
  if (next === lostAt) return;
  lostAt = next;
  for (const watch of watchers) watch();
};

/** The service has answered, whatever it said. */
export const heard = (): void => {
  heardAt = Date.now();
  become(null);
};
/** A call got no answer, or one of something between this page and the service. */
export const unheard = (): void => become(lostAt ?? heardAt);

/** Calls `watch` when contact is lost or found again; answers what ends that. */
export const watchContact = (watch: () => void): (() => void) => {
  watchers.add(watch);
  return () => watchers.delete(watch);
};
/** When the last answer came, in milliseconds since 1970; null: the service answers. */
export const contactLostAt = (): number | null => lostAt;
