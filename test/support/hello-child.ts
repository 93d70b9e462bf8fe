// A local user without our library: says hello to an agent as the user id of DKE_TEST_USER, over as
// many connections as there are lines on its standard input, all of which stay. Each line is the
// path of a pkcs11.toml, or a whole hello (JSON). Writes the return value of each C_Initialize, a
// number, or "closed".
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { frame } from './frame-client.ts';
import { becomeUser, helloBody, plainHello } from './hello.ts';

becomeUser(Number(process.env.DKE_TEST_USER ?? process.getuid?.() ?? 0));

const helloOf = (line: string): string => (line.startsWith('{') ? line : plainHello(line));

const initialize = (path: string, line: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(path);
    let received = Buffer.alloc(0);
    socket.on('error', () => resolve('closed'));
    socket.on('close', () => resolve('closed'));
    socket.on('connect', () => socket.write(Buffer.concat([Buffer.from([0xd1]), frame(1, helloBody(helloOf(line)))])));
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
