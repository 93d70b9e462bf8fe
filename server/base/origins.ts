// The origin of a connection, for limits.

/** The first groups of an IPv6 address, 16 bits each. */
const prefixOf = (peer: string, groups: number): string => {
  const [head = '', tail] = peer.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right].slice(0, groups).join(':');
};
type Origin = readonly [kind: 'address' | 'network', text: string];
/** What counts as one origin: a household has a /64 of IPv6 addresses, and a customer of a provider often a /48. */
export const originsOf = (peer: string | null): readonly [Origin, ...Origin[]] => {
  if (peer === null || !peer.includes(':') || peer.includes('.')) return [['address', peer ?? 'unknown']];
  return [
    ['address', prefixOf(peer, 4)],
    ['network', `${prefixOf(peer, 3)}::/48`],
  ];
};

/** Whether the connection is from the service's own host. */
export const isLocal = (peer: string | null): boolean =>
  peer !== null && (peer === '::1' || /^(?:::ffff:)?127\./.test(peer));
