// Places for work that is heavy or takes long: so many in all, so many of one caller, and so many
// of the callers of one group. Nothing waits: who finds no place is refused, and asks again. The
// caller and the group are known before: strangers take no place.

export interface ShareLimits {
  readonly all: number;
  readonly group: number;
  readonly caller: number;
}

export interface Shares {
  /**
   * Undefined: there is no place. What is answered gives the place back; called twice, it does
   * nothing.
   */
  take(caller: string, group: string): (() => void) | undefined;
}

const allOfThem = 'all';

export const createShares = (limits: ShareLimits): Shares => {
  const taken = new Map<string, number>();
  return {
    take: (caller, group) => {
      const places = [
        [allOfThem, limits.all],
        [`group ${group}`, limits.group],
        [`caller ${caller}`, limits.caller],
      ] as const;
      if (places.some(([name, most]) => (taken.get(name) ?? 0) >= most)) return undefined;
      for (const [name] of places) taken.set(name, (taken.get(name) ?? 0) + 1);
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        for (const [name] of places) {
          const left = (taken.get(name) ?? 0) - 1;
          if (left > 0) taken.set(name, left);
          else taken.delete(name);
        }
      };
    },
  };
};
