// The rules of test/conformance/reference through a library that is not ours, Debian's
// p11-kit-client.so, straight on our agent's socket.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { client, whyNoComparison } from '../support/p11-kit.ts';
import { startOwnToken, type Token } from '../support/token.ts';
import { type Bench, openBench } from './reference/bench.ts';
import { lookAt, rules } from './reference/rules.ts';
import { wires, wronglySeen } from './reference/wires.ts';

const wire = 'p11-kit-client.so on our agent';

const why = client === undefined ? 'p11-kit-client.so is not installed' : whyNoComparison();

describe.runIf(why === undefined)(wire, () => {
  let token: Token;
  let agent: AgentProcess;
  let bench: Bench;
  beforeAll(async () => {
    token = await startOwnToken('reference');
    const folder = join(token.folder, 'agent');
    mkdirSync(folder);
    agent = await startAgent(folder, { environment: token.environment });
    const environment = { P11_KIT_SERVER_ADDRESS: `unix:path=${agent.socket}` };
    bench = openBench({ ...token, module: client ?? '', environment });
  });
  afterAll(async () => {
    bench.end();
    await agent.stop();
    await token.end();
  });
  test.each(rules.map((rule) => [rule.name, rule] as const))('%s', async (_, rule) => {
    const seen = await lookAt(rule, bench);
    const expected = wronglySeen(wires[wire], rule, seen);
    if (expected !== undefined) expect(seen).toEqual(expected);
  });
});

if (why !== undefined) console.log(`skipped: ${why}`);
