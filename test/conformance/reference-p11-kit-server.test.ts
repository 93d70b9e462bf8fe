// The rules of test/conformance/reference through our library to an agent that is not ours:
// `p11-kit server` over SoftHSM2.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { missingForServer, whyNoComparison } from '../support/p11-kit.ts';
import { library } from '../support/pkcs11-host.ts';
import { startReferenceToken, type Token } from '../support/token.ts';
import { type Bench, openBench } from './reference/bench.ts';
import { lookAt, rules } from './reference/rules.ts';
import { wires, wronglySeen } from './reference/wires.ts';

const wire = 'our library on p11-kit server over SoftHSM2';
const missing = missingForServer();
const why = missing === null ? whyNoComparison() : `${missing} is not installed`;

describe.runIf(why === undefined)(wire, () => {
  let token: Token;
  let server: Daemon;
  let bench: Bench;
  beforeAll(async () => {
    token = await startReferenceToken('reference');
    const socket = join(token.folder, 'p11-kit.sock');
    const args = ['server', '-f', '--provider', token.module, '-n', socket, 'pkcs11:'];
    server = await startDaemon('p11-kit', args, { environment: token.environment, ready: /P11_KIT_SERVER_ADDRESS/ });
    bench = openBench({ ...token, module: library, environment: { DKE_PKCS11_SOCKET: socket } });
  });
  afterAll(async () => {
    bench.end();
    await server.stop();
    await token.end();
  });
  test.each(rules.map((rule) => [rule.name, rule] as const))('%s', async (_, rule) => {
    const seen = await lookAt(rule, bench);
    const expected = wronglySeen(wires[wire], rule, seen);
    if (expected !== undefined) expect(seen).toEqual(expected);
  });
});

if (why !== undefined) console.log(`skipped: ${why}`);
