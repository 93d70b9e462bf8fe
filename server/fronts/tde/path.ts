// The addresses of the TDE API (contract/tde.ts), matched byte for byte: no normalising, no percent-encoding, no query. What
// does not match here does not exist.

import { type TdeRoute, tdeRoutes } from '../contract/tde.ts';

export interface TdePath {
  readonly accessGuid: string;
  readonly appId: string;
  readonly route: TdeRoute;
  /** As it is in the path; undefined for routes without one. */
  readonly handle: string | undefined;
}

const base = '/tde/v1/';

const ofObject = '/objects/:handle';
const routesBy = (keep: (path: string) => boolean, name: (path: string) => string) =>
  new Map(
    (Object.keys(tdeRoutes) as TdeRoute[])
      .filter((route) => keep(tdeRoutes[route].path))
      .map((route) => [name(tdeRoutes[route].path), route]),
  );
/** By the path below the base, and by what follows an object's handle. */
const direct = routesBy(
  (path) => !path.startsWith(ofObject),
  (path) => path,
);
const below = routesBy(
  (path) => path.startsWith(ofObject),
  (path) => path.slice(ofObject.length),
);

/** True for what the TDE front answers, well-formed or not. */
export const isTdePath = (target: string | undefined): boolean => target?.startsWith(base) === true;

/** Null when there is no such path. */
export const parseTdePath = (target: string): TdePath | null => {
  const [, accessGuid = '', appId = '', rest = ''] = /^\/tde\/v1\/([^/?#]+)\/([^/?#]+)(\/[^?#]+)$/.exec(target) ?? [];
  const route = direct.get(rest);
  if (route !== undefined) return { accessGuid, appId, route, handle: undefined };
  const [, handle, action = ''] = /^\/objects\/([^/]+)(\/.+)$/.exec(rest) ?? [];
  const ofOne = handle === undefined ? undefined : below.get(action);
  return ofOne === undefined ? null : { accessGuid, appId, route: ofOne, handle };
};
