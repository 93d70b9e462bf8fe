// Sets of networks, each an address or a CIDR block (`10.0.0.0/8`, `fd00::/8`).

import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { canonicalAddress } from './address.ts';

/**
 * Networks, and client certificates, of one application: each host of a cluster may have its own,
 * twice while they are replaced.
 */
export const mostCallers = 32;

export interface Networks {
  /** False for an address that is not known. */
  has(address: string | null | undefined): boolean;
}

interface Block {
  readonly address: string;
  readonly length: number;
  readonly family: 'ipv4' | 'ipv6';
}

const parse = (network: string): Block | undefined => {
  const [address = '', length, ...rest] = network.split('/');
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : undefined;
  if (family === undefined || rest.length > 0 || address.includes('%')) return undefined;
  const longest = family === 'ipv4' ? 32 : 128;
  if (length === undefined) return { address, length: longest, family };
  return /^\d{1,3}$/.test(length) && Number(length) <= longest
    ? { address, length: Number(length), family }
    : undefined;
};

export const isNetwork = (text: string): boolean => parse(text) !== undefined;

/** Texts that are not networks are left out. */
export const createNetworks = (networks: readonly string[]): Networks => {
  const list = new BlockList();
  for (const network of networks) {
    const block = parse(network);
    if (block !== undefined) list.addSubnet(block.address, block.length, block.family);
  }
  return {
    has: (address) => {
      if (address == null) return false;
      const text = canonicalAddress(address);
      return list.check(text, isIPv6(text) ? 'ipv6' : 'ipv4');
    },
  };
};
