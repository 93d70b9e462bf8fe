// What only a C program sees of the library, and mechanisms whose parameter is a structure with
// pointers in it: the programs of test/native/client against the built library, with the agent and
// the service in processes of their own.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { library, type ServiceProcess, startService, writeConfig } from '../support/pkcs11-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-c-programs-'));
let service: ServiceProcess;
let agent: AgentProcess;
let config: string;
beforeAll(async () => {
  service = await startService();
  config = writeConfig(folder, service);
  agent = await startAgent(folder, { environment: { DKE_PKCS11_CONF: config } });
});
afterAll(async () => {
  await agent?.stop();
  await service?.stop();
  rmSync(folder, { recursive: true });
});

test.each([
  // First: the others destroy keys, and the erasure run that follows ends messages whose parts are
  // under way.
  ['messages', 'sends messages longer than one of the library carries, in one call and in parts'],
  ['standard', 'finds output where it belongs, its length as 5.2 has it, logins, refusals and versions'],
  ['parameters', 'has what its pointers show reach the token, and the published answers come back'],
])('the C program %s %s', async (name) => {
  const program = resolve(import.meta.dirname, `../../build/pkcs11-${name}`);
  const env = { ...process.env, DKE_PKCS11_CONF: config, DKE_PKCS11_SOCKET: agent.socket };
  const said = await promisify(execFile)(program, [library], { env }).catch((error: { stdout?: string }) => error);
  expect(said.stdout).toBe('as the standard has it\n');
});
