// What a page on paper is. The frame's navigation and all buttons stay on the screen (styles.css).

import { useLocation } from '@tanstack/react-router';
import { useZone, zoneName } from '../ui/fields/zone.tsx';
import { Time } from '../ui/page/time.tsx';
import { usePrintedAt } from './printing.ts';

/** What the printed page is: where it is from, which filter it has, when and in which zone. */
export const PrintedHead = () => {
  const at = usePrintedAt();
  const zone = useZone();
  const { pathname, search } = useLocation();
  if (at === null) return null;
  const filters = Object.entries(search as Readonly<Record<string, unknown>>).filter(
    ([, value]) => value !== undefined,
  );
  return (
    <dl className="mx-4 mb-2 grid grid-cols-[auto_1fr] gap-x-3 border-b border-line-strong pb-2 text-xs">
      <dt>Page</dt>
      <dd className="wrap-anywhere">{`${location.origin}${pathname}`}</dd>
      <dt>Filter</dt>
      <dd className="wrap-anywhere">
        {filters.length === 0 ? 'none' : filters.map(([name, value]) => `${name} = ${String(value)}`).join(', ')}
      </dd>
      <dt>Printed</dt>
      <dd>
        <Time value={new Date(at).toISOString()} seconds />, all times in {zoneName(zone)}
      </dd>
    </dl>
  );
};
