// The PROXY protocol, version 2 (haproxy.org, "The PROXY protocol", section 2.2): the header that a
// TCP balancer sends before the client's own bytes, so that the peer's real address is known.
// Version 1 is not spoken.

import type { Socket } from 'node:net';

/** Every header begins with these twelve bytes. */
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const fixedLength = 16;
/** Addresses and their extensions; balancers send some dozens of bytes. */
const longestRest = 2048;

/**
 * The peer that a header names; `address` null when the balancer speaks for itself (LOCAL) or of no
 * IP address.
 */
export interface ProxiedPeer {
  readonly address: string | null;
}

const ipv6 = (bytes: Buffer): string =>
  Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(group * 2).toString(16)).join(':');

/** Reads the part after the fixed sixteen bytes. Undefined when the header is malformed. */
const readAddress = (command: number, family: number, rest: Buffer): ProxiedPeer | undefined => {
  if (command === 0) return { address: null };
  if (command !== 1) return undefined;
  const transport = family >> 4;
  if (transport === 1) return rest.length < 12 ? undefined : { address: rest.subarray(0, 4).join('.') };
  if (transport === 2) return rest.length < 36 ? undefined : { address: ipv6(rest) };
  return { address: null };
};

/**
 * Reads the header from a socket without another reader, and tells once: the peer, or undefined
 * when what came is another thing (the socket is useless then), the time is over, or the socket
 * ended. Bytes behind the header stay in the socket.
 */
export const readProxyHeader = (
  socket: Socket,
  timeoutMs: number,
  tell: (peer: ProxiedPeer | undefined) => void,
): void => {
  let head: Buffer | undefined;
  const settle = (peer: ProxiedPeer | undefined): void => {
    socket.off('readable', read).off('end', end).off('error', end).off('close', end);
    clearTimeout(timer);
    tell(peer);
  };
  const end = (): void => settle(undefined);
  const timer = setTimeout(end, timeoutMs);
  /** Undefined: wait for more; null: this is not a header. */
  const parse = (): ProxiedPeer | null | undefined => {
    head ??= (socket.read(fixedLength) as Buffer | null) ?? undefined;
    if (head === undefined) return undefined;
    const [kind = 0, family = 0] = head.subarray(signature.length);
    if (head.length < fixedLength || !head.subarray(0, signature.length).equals(signature) || kind >> 4 !== 2)
      return null;
    const length = head.readUInt16BE(14);
    if (length > longestRest) return null;
    const rest = length === 0 ? Buffer.alloc(0) : (socket.read(length) as Buffer | null);
    if (rest === null) return undefined;
    return rest.length < length ? null : (readAddress(kind & 0x0f, family, rest) ?? null);
  };
  const read = (): void => {
    const peer = parse();
    if (peer !== undefined) settle(peer ?? undefined);
  };
  socket.on('readable', read).on('end', end).on('error', end).on('close', end);
  read();
};
