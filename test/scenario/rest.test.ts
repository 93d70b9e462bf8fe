// A server is as fast after an idle time as before: V8 keeps the hidden classes of the objects of a
// request (server/fronts/listener/shapes.ts).
import { Agent } from 'node:https';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { openConsoleApi } from '../support/console-api.ts';
import { startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

const linesOf = (output: string, word: string): string[] => output.split('\n').filter((line) => line.startsWith(word));

test('the heap is collected many times without a request: requests are not made of hash tables afterwards', async () => {
  const server = await startServerProcess({
    program: [
      '--expose-gc',
      '--allow-natives-syntax',
      '--import',
      join(import.meta.dirname, '../support/shapes-probe.ts'),
      resolve(import.meta.dirname, '../../server/app/process.ts'),
    ],
  });
  try {
    const { endpoint, configuration } = await createXksEndpoint(
      { server, api: openConsoleApi(server, server.adminToken) },
      'rest',
    );
    const encrypt = { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' };
    /** Some requests over one connection, which then ends; returns the objects of the last one. */
    const ask = async (): Promise<string> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const before = linesOf(server.output(), 'shapes').length;
      for (let times = 0; times < 10; times += 1) {
        const target = `/keys/${endpoint.keyId}/encrypt`;
        expect((await callXks({ server, configuration }, { target, body: encrypt, agent })).status).toBe(200);
      }
      agent.destroy();
      await expect.poll(() => linesOf(server.output(), 'shapes').length).toBe(before + 10);
      return linesOf(server.output(), 'shapes').at(-1) ?? '';
    };
    const fast = 'shapes {"request":true,"answer":true,"socket":true}';
    // Before the first idle time, only the console's API was called.
    for (let rest = 1; rest <= 4; rest += 1) {
      server.child.kill('SIGUSR2');
      await expect.poll(() => linesOf(server.output(), 'collected').length).toBe(rest);
      expect(await ask(), `after ${rest} rests`).toBe(fast);
    }
  } finally {
    await server.remove();
  }
});
