// A local user without our library, whose service never answers: calls C_Initialize, opens a
// session, and asks without waiting for the sizes of so many objects of the token. Writes a line
// with the return value of each of these calls that is answered.

import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calls } from '../../provider/schema/calls.ts';
import { FrameClient, frame } from './frame-client.ts';
import { becomeUser, helloBody, plainHello } from './hello.ts';

const [socket = '', user = '', count = ''] = process.argv.slice(2);
becomeUser(Number(user));

const silent = createServer(() => undefined);
await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
const { port } = silent.address() as { readonly port: number };
const folder = mkdtempSync(join(tmpdir(), 'dke-pending-'));
const config = join(folder, 'pkcs11.toml');
writeFileSync(
  config,
  `server_url = "https://127.0.0.1:${port}/tde/v1/guid/app"\naccess_token = "guid"\nconnect_timeout_ms = 60000\ncall_timeout_ms = 600000\n`,
);
chmodSync(config, 0o600);

const body = ({ code }: { readonly code: number }, ...numbers: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(8 + numbers.length * 9);
  bytes.writeUInt32BE(code, 0);
  bytes.writeUInt32BE(numbers.length, 4);
  bytes.fill('u', 8, 8 + numbers.length);
  numbers.forEach((number, at) => void bytes.writeBigUInt64BE(BigInt(number), 8 + numbers.length + at * 8));
  return bytes;
};
/** The return value of an answer, or null, and the first number of its body. */
const read = (answer: Buffer): [rv: bigint | null, number: bigint] => {
  const at = 8 + answer.readUInt32BE(4);
  const number = answer.length >= at + 8 ? answer.readBigUInt64BE(at) : 0n;
  return [answer.readUInt32BE(0) === 0 ? number : null, number];
};

const client = new FrameClient(socket);
await client.greet(0xd1);
await client.call(1, helloBody(plainHello(config)));
const [, session] = read(await client.call(2, body(calls.C_OpenSession, 0, 6)));
const asked = Array.from({ length: Number(count) }, (_, n) =>
  frame(100 + n, body(calls.C_GetObjectSize, Number(session), 1000 + n)),
);
client.write(Buffer.concat(asked));
for (;;) {
  const [rv] = read((await client.readFrame()).body);
  process.stdout.write(`${rv}\n`);
}
