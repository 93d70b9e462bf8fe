// The origin of a connection, for limits.

import { isIPv6 } from 'node:net';
import { canonicalAddress, groupsOf } from './address.ts';

/** The first groups of an IPv6 address, 16 bits each. */
const prefixOf = (peer: string, groups: number): string =>
  groupsOf(peer)
    .slice(0, groups)
    .map((group) => group.toString(16))
    .join(':');
type Origin = readonly [kind: 'address' | 'network', text: string];
/**
 * What counts as one origin: a household has a /64 of IPv6 addresses, and a customer of a provider
 * often a /48.
 */
export const originsOf = (peer: string | null): readonly [Origin, ...Origin[]] => {
  const address = peer === null ? 'unknown' : canonicalAddress(peer);
  if (!isIPv6(address)) return [['address', address]];
  return [
    ['address', prefixOf(address, 4)],
    ['network', `${prefixOf(address, 3)}::/48`],
  ];
};

/** Whether the connection is from the service's own host. */
export const isLocal = (peer: string | null): boolean =>
  peer !== null && /^(?:::1$|127\.)/.test(canonicalAddress(peer));
