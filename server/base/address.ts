// One text for one address (RFC 5952): what limits, rules and logs compare. An IPv4 address is
// itself however it came: from a socket for both families, or within a PROXY header as a mapped one
// (RFC 4291, 2.5.5.2).

import { isIPv4, isIPv6 } from 'node:net';

/** Sixteen-bit groups of an IPv6 address without a zone. */
export const groupsOf = (address: string): readonly number[] => {
  // An IPv4 address at its end is two groups.
  const text = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = '', tail] = text.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right].map((group) => Number.parseInt(group, 16));
};

/** The longest run of two zero groups or more, the first of equals, is left out. */
const shorten = (groups: readonly number[]): string => {
  const text = groups.map((group) => group.toString(16)).join(':');
  const [longest = ''] = [...text.matchAll(/\b0(?::0)+\b/g)]
    .map(([run]) => run)
    .sort((one, other) => other.length - one.length);
  if (longest === '') return text;
  const at = text.search(new RegExp(`(?<![0-9a-f:])${longest}(?![0-9a-f])|(?<=:)${longest}(?![0-9a-f])`));
  const before = text.slice(0, at).replace(/:$/, '');
  const after = text.slice(at + longest.length).replace(/^:/, '');
  return `${before}::${after}`;
};

/** Any other text stays as it is. */
export const canonicalAddress = (address: string): string => {
  if (isIPv4(address)) return address;
  const [bare = ''] = address.split('%');
  if (!isIPv6(bare)) return address;
  const groups = groupsOf(bare);
  const [high = 0, low = 0] = groups.slice(6);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff)
    return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  return shorten(groups);
};
