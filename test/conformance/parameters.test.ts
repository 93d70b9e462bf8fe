// Mechanisms whose parameter is a structure with pointers in it, used by a C program: test/native/client/parameters.c against the
// built library, with the agent and the service in processes of their own.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { library, type ServiceProcess, startService, writeConfig } from '../support/pkcs11-host.ts';

const program = resolve(import.meta.dirname, '../../build/pkcs11-parameters');
const folder = mkdtempSync(join(tmpdir(), 'dke-parameters-'));
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

test('what the pointers show reaches the token, and the published answers come back', async () => {
  const env = { ...process.env, DKE_PKCS11_CONF: config, DKE_PKCS11_SOCKET: agent.socket };
  const said = await promisify(execFile)(program, [library], { env }).catch((error: { stdout?: string }) => error);
  expect(said.stdout).toBe('as the standards have it\n');
});
