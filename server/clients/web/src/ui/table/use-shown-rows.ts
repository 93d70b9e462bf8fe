// Which rows of a list are in the page: of a long one those near the window, the rest is two
// spacers. Rows are equally high, so a turn of the wheel costs the same among a hundred rows and a
// hundred thousand.

import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { usePrintedAt } from '../../audit/printing.ts';
import { heightBefore, type OpenRow, type Range, rowsBetween } from './rows.ts';

/**
 * Below this all rows are in the page: the browser's own search finds them, and rows may be of any
 * height.
 */
const mostWhole = 120;

export interface ShownRows {
  readonly whole: boolean;
  readonly range: Range;
  /** Heights of the rows before and after the range. */
  readonly before: number;
  readonly after: number;
}

export const useShownRows = (
  count: number,
  estimate: number,
  open: readonly OpenRow[],
): ShownRows & { readonly frame: RefObject<HTMLDivElement | null> } => {
  const frame = useRef<HTMLDivElement>(null);
  const isPrinted = usePrintedAt() !== null;
  const whole = count <= mostWhole || isPrinted;
  const [real, setReal] = useState<{ readonly estimate: number; readonly height: number } | null>(null);
  const height = real?.estimate === estimate ? real.height : estimate;
  const [seen, setSeen] = useState<readonly [number, number]>([0, 2 * estimate * mostWhole]);
  const near = useMemo(() => rowsBetween(count, height, seen, open), [count, height, seen, open]);
  const range = useStable(whole ? { first: 0, end: count } : near);
  useEffect(() => {
    if (whole) return undefined;
    const look = (): void => {
      const top = frame.current?.getBoundingClientRect().top ?? 0;
      const next = [Math.max(0, -top), Math.max(0, globalThis.innerHeight - top)] as const;
      // The range decides what is drawn: without a new one nothing is.
      setSeen((now) => {
        const [a, b] = [rowsBetween(count, height, now, open), rowsBetween(count, height, next, open)];
        return a.first === b.first && a.end === b.end ? now : next;
      });
    };
    look();
    globalThis.addEventListener('scroll', look, { passive: true });
    globalThis.addEventListener('resize', look);
    return () => {
      globalThis.removeEventListener('scroll', look);
      globalThis.removeEventListener('resize', look);
    };
  }, [whole, count, height, open]);
  // The font and the width decide how high a row really is.
  useLayoutEffect(() => {
    if (whole) return;
    const row = frame.current?.querySelector('tbody[data-row] > tr');
    const drawn = row?.parentElement?.childElementCount === 1 ? row.parentElement.getBoundingClientRect().height : 0;
    if (drawn > 0 && Math.abs(drawn - height) > 0.01) setReal({ estimate, height: drawn });
  }, [whole, estimate, height]);
  return {
    frame,
    whole,
    range,
    before: whole ? 0 : heightBefore(range.first, height, open),
    after: whole ? 0 : heightBefore(count, height, open) - heightBefore(range.end, height, open),
  };
};

/** The former object while the range is equal: what compares objects then finds no change. */
const useStable = (range: Range): Range => {
  const last = useRef(range);
  if (last.current.first !== range.first || last.current.end !== range.end) last.current = range;
  return last.current;
};
