// A database's view for conformance tests: the built library in the test's own process, the agent and the service each in a
// process of theirs. One test file is one process, because C_Initialize is once per process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pkcs11js from 'pkcs11js';
import { returnValueName } from '../../provider/schema/return-values.ts';
import { type AgentProcess, startAgent } from './agent-process.ts';
import { testGuid } from './memory-server.ts';

export const library = resolve(import.meta.dirname, '../../build/provider/1.0/libdke_pkcs11.so');

export interface ServiceProcess {
  readonly serverUrl: string;
  readonly accessToken: string;
  readonly caFile: string;
  stop(): Promise<void>;
}

/** The service for one test file. */
export const startService = async (folder: string): Promise<ServiceProcess> => {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'memory-server.ts'), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const kill = (): boolean => child.kill('SIGKILL');
  process.once('exit', kill);
  child.unref();
  (child.stdout as Socket | null)?.unref();
  (child.stdin as Socket | null)?.unref();
  // Closing the input of a child that has gone is no fault of a test.
  child.stdin?.on('error', () => undefined);
  const [line] = (await Promise.race([
    once(child.stdout ?? child, 'data'),
    once(child, 'exit').then(() => {
      throw new Error('the service ended before it listened');
    }),
  ])) as [Buffer];
  const { port } = JSON.parse(line.toString()) as { port: number };
  return {
    serverUrl: `https://127.0.0.1:${port}/tde/v1/${testGuid}/conformance`,
    accessToken: testGuid,
    caFile: join(folder, 'ca.pem'),
    async stop() {
      const gone = once(child, 'exit');
      child.stdin?.end();
      await gone;
      process.off('exit', kill);
    },
  };
};

/** pkcs11.toml as a database host has it. */
export const writeConfig = (folder: string, service: ServiceProcess, extra = ''): string => {
  const path = join(folder, 'pkcs11.toml');
  writeFileSync(
    path,
    `server_url = "${service.serverUrl}"\naccess_token = "${service.accessToken}"\nca_file = "${service.caFile}"\n` +
      `log_dir = "${join(folder, 'log')}"\n${extra}`,
  );
  chmodSync(path, 0o600);
  return path;
};

export interface Pkcs11Host {
  readonly folder: string;
  readonly pkcs11: pkcs11js.PKCS11;
  readonly slot: Buffer;
  readonly agent: AgentProcess;
  readonly service: ServiceProcess;
  /** A session of the logged-in user; read-write unless told otherwise. */
  open(readWrite?: boolean): Buffer;
  stop(): Promise<void>;
}

/** Starts everything, loads the library, and logs in unless told otherwise. */
export const startHost = async (
  options: { readonly login?: boolean; readonly config?: string } = {},
): Promise<Pkcs11Host> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-host-'));
  const service = await startService(folder);
  const config = writeConfig(folder, service, options.config);
  const agent = await startAgent(folder, { environment: { DKE_PKCS11_CONF: config } });
  process.env.DKE_PKCS11_CONF = config;
  process.env.DKE_PKCS11_SOCKET = agent.socket;
  const pkcs11 = new pkcs11js.PKCS11();
  pkcs11.load(library);
  pkcs11.C_Initialize();
  const [slot] = pkcs11.C_GetSlotList(true);
  if (slot === undefined) throw new Error('no slot');
  const open = (readWrite = true): Buffer =>
    pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | (readWrite ? pkcs11js.CKF_RW_SESSION : 0));
  if (options.login !== false) pkcs11.C_Login(open(false), pkcs11js.CKU_USER, 'anything');
  return {
    folder,
    pkcs11,
    slot,
    agent,
    service,
    open,
    async stop() {
      // A test may have finalized it already.
      rvOf(() => pkcs11.C_Finalize());
      pkcs11.close();
      await agent.stop();
      await service.stop();
      rmSync(folder, { recursive: true });
    },
  };
};

/** The name of the return value of a call: CKR_OK when it does not throw. */
export const rvOf = (call: () => unknown): string => {
  try {
    call();
    return 'CKR_OK';
  } catch (error) {
    // pkcs11js knows the names of 2.20 only: the number tells.
    const { code, message } = error as { code?: unknown; message: string };
    const number = typeof code === 'number' && code > 0 ? code : Number(/CKR_\w+:(\d+)/.exec(message)?.[1]);
    if (Number.isInteger(number)) return returnValueName(number);
    throw error;
  }
};
