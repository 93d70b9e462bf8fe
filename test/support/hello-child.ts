// A local user without our library: says hello to an agent as the user id of DKE_TEST_USER, over as many connections as there are lines
// on its standard input, all of which stay. Each line is the path of a pkcs11.toml, or a whole hello (JSON). Writes the return value of
// each C_Initialize, a number, or "closed".
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { calls } from '../../provider/schema/calls.ts';
import { frame } from './frame-client.ts';

const user = Number(process.env.DKE_TEST_USER ?? process.getuid?.() ?? 0);
if (user !== process.getuid?.()) {
  process.setgroups?.([]);
  process.setgid?.(user);
  process.setuid?.(user);
}

const array = (bytes: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head[0] = 1;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};
const signature = Buffer.from('ayyay');
const body = (hello: string): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(calls.C_Initialize.code, 0);
  head.writeUInt32BE(signature.length, 4);
  const handshake = Buffer.from('PRIVATE-GNOME-KEYRING-PKCS11-PROTOCOL-V-1');
  return Buffer.concat([head, signature, array(handshake), Buffer.from([1]), array(Buffer.from(`${hello}\0`))]);
};
const helloOf = (line: string): string =>
  line.startsWith('{')
    ? line
    : JSON.stringify({ config: line, library: '1.0', pid: process.pid, process: 'guest', login: null, sessions: [] });

const initialize = (path: string, line: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(path);
    let received = Buffer.alloc(0);
    socket.on('error', () => resolve('closed'));
    socket.on('close', () => resolve('closed'));
    socket.on('connect', () => socket.write(Buffer.concat([Buffer.from([0xd1]), frame(1, body(helloOf(line)))])));
    socket.on('data', (bytes) => {
      received = Buffer.concat([received, bytes]);
      const answer = received.subarray(1 + 12);
      if (answer.length < 8 || answer.length < received.readUInt32BE(1 + 8)) return;
      const isError = answer.readUInt32BE(0) === 0;
      resolve(isError ? String(answer.readBigUInt64BE(8 + answer.readUInt32BE(4))) : '0');
    });
  });

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${await initialize(process.argv[2] ?? '', line)}\n`);
