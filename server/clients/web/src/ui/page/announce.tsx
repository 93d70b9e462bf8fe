// Short messages about what just happened, spoken by screen readers and shown for a few seconds.
// Failures are not announced here: they stay where they happened, with what to do about them.

import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import { IconButton } from './button.tsx';
import { Icon } from './icon.tsx';

type Announce = (message: string) => void;

const AnnounceContext = createContext<Announce>(() => undefined);

export const useAnnounce = (): Announce => useContext(AnnounceContext);

const shownFor = 6000;

export const AnnounceProvider = ({ children }: { children: ReactNode }) => {
  const [current, setCurrent] = useState<{ id: number; message: string } | null>(null);
  const announce = useCallback<Announce>((message) => setCurrent((last) => ({ id: (last?.id ?? 0) + 1, message })), []);

  useEffect(() => {
    if (current === null) return undefined;
    const timer = setTimeout(() => setCurrent(null), shownFor);
    return () => clearTimeout(timer);
  }, [current]);

  const shown = useMemo(
    () =>
      current && (
        <div
          key={current.id}
          className="rise pointer-events-auto flex max-w-md items-center gap-3 rounded-lg border border-line bg-raised py-1.5 pr-1.5 pl-4 shadow-float"
        >
          <Icon name="check" className="size-5 text-ok" />
          <span className="min-w-0 break-words">{current.message}</span>
          <IconButton icon="close" label="Dismiss" onClick={() => setCurrent(null)} />
        </div>
      ),
    [current],
  );

  return (
    <AnnounceContext value={announce}>
      {children}
      <output
        aria-live="polite"
        className="pointer-events-none fixed inset-x-4 bottom-4 z-40 flex justify-center sm:justify-end"
      >
        {shown}
      </output>
    </AnnounceContext>
  );
};
