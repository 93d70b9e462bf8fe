// Which answers have an entity tag.

import { apiRoutes } from './index.ts';
import type { RouteGroup, RouteRow } from './row.ts';

/** Rows whose answers have an ETag: those that some change is compared with. */
export const versioned: ReadonlySet<RouteRow> = new Set(
  Object.values(apiRoutes).flatMap((rows: RouteGroup) =>
    Object.values(rows).flatMap(({ changes }) => {
      const row = changes === undefined ? undefined : rows[changes];
      return row === undefined ? [] : [row];
    }),
  ),
);
