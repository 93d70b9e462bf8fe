// Typed text is not lost by a key, a link or the Back button: a form that was changed is left after
// a question. Values that are secret are not kept for anyone, and are not asked about.

import { useBlocker } from '@tanstack/react-router';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from 'react';

interface Unsaved {
  /** Something was typed. */
  note(): void;
  /** The text was sent, or is given up. */
  forget(): void;
  /** Leaves at once, or after the question. */
  leave(go: () => void): void;
}

const Context = createContext<Unsaved | undefined>(undefined);
/** The guard around this form; undefined: none. */
export const useUnsaved = (): Unsaved | undefined => useContext(Context);

/** Guards of this page that have unsaved text. */
const changed = new Set<object>();
/** Whether a form of this page has text that was not sent. */
export const hasUnsaved = (): boolean => changed.size > 0;

export const UnsavedGuard = ({
  question: Question,
  children,
}: {
  /** Asks whether the text is given up. */
  question: (props: { onStay: () => void; onDiscard: () => void }) => ReactNode;
  children: ReactNode;
}) => {
  const own = useRef({}).current;
  const [go, setGo] = useState<(() => void) | null>(null);
  const isChanged = (): boolean => changed.has(own);
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged() && current.pathname !== next.pathname,
    enableBeforeUnload: isChanged,
    withResolver: true,
  });
  const unsaved = useMemo<Unsaved>(
    () => ({
      note: () => void changed.add(own),
      forget: () => void changed.delete(own),
      leave: (next) => {
        if (changed.has(own)) setGo(() => next);
        else next();
      },
    }),
    [own],
  );
  useEndOf(own);
  const stay = (): void => {
    setGo(null);
    blocker.reset?.();
  };
  const discard = (): void => {
    unsaved.forget();
    setGo(null);
    blocker.proceed?.();
    go?.();
  };
  return (
    <>
      <Context value={unsaved}>{children}</Context>
      <Context value={undefined}>
        {(go !== null || blocker.status === 'blocked') && <Question onStay={stay} onDiscard={discard} />}
      </Context>
    </>
  );
};

/** A guard that is gone has nothing to guard. */
const useEndOf = (own: object): void => useEffect(() => () => void changed.delete(own), [own]);
