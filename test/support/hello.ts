// The first call of a local user without our library: C_Initialize, with the hello of a library.
import { calls } from '../../provider/schema/calls.ts';

const array = (bytes: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head[0] = 1;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};
const signature = Buffer.from('ayyay');

/** The body of the frame. */
export const helloBody = (hello: string): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(calls.C_Initialize.code, 0);
  head.writeUInt32BE(signature.length, 4);
  const handshake = Buffer.from('PRIVATE-GNOME-KEYRING-PKCS11-PROTOCOL-V-1');
  return Buffer.concat([head, signature, array(handshake), Buffer.from([1]), array(Buffer.from(`${hello}\0`))]);
};

/** What a library of this version says. */
export const plainHello = (config: string): string =>
  JSON.stringify({ config, library: '1.0', pid: process.pid, process: 'guest', login: null, sessions: [] });

export const becomeUser = (user: number): void => {
  if (user === process.getuid?.()) return;
  process.setgroups?.([]);
  process.setgid?.(user);
  process.setuid?.(user);
};
