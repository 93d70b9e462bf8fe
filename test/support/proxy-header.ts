// The header of the PROXY protocol, version 2, as a balancer writes it for an IPv4 peer.

export const proxyHeader = (address: string, port = 50_000): Buffer => {
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(port, 0);
  ports.writeUInt16BE(443, 2);
  const peer = Buffer.from(address.split('.').map(Number));
  return Buffer.concat([
    Buffer.from('0d0a0d0a000d0a515549540a2111000c', 'hex'),
    ...[peer, Buffer.from([127, 0, 0, 1]), ports],
  ]);
};
