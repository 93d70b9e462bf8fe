// A database's view for conformance tests: the built library in the test's own process, the agent
// and the service each in a process of theirs. One test file is one process, because C_Initialize
// is once per process.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pkcs11js from 'pkcs11js';
import { type AgentProcess, startAgent } from './agent-process.ts';
import { type ConsoleApi, createGroup, openConsoleApi, registerApplication } from './console-api.ts';
import { grapheneCalls, type Ways } from './graphene-calls.ts';
import { patient } from './patience.ts';
import { library, rvOf } from './pkcs11-library.ts';
import { startServerProcess } from './server-process.ts';

export { library, rvOf };

export interface ServiceProcess {
  readonly pid: number;
  readonly serverUrl: string;
  readonly accessToken: string;
  readonly caFile: string;
  /** The group of the application: all applications of a group see the same keys. */
  readonly groupId: string;
  readonly api: ConsoleApi;
  stop(): Promise<void>;
}

/** A server for one test file, with one application, called `conformance`. */
export const startService = async (): Promise<ServiceProcess> => {
  const server = await startServerProcess({ inFolder: true });
  const api = openConsoleApi(server, server.adminToken);
  const groupId = await createGroup(api, 'conformance');
  const { config } = await registerApplication(api, 'conformance', groupId);
  return {
    pid: server.child.pid ?? 0,
    serverUrl: config.server_url,
    accessToken: config.access_token,
    caFile: server.caFile,
    groupId,
    api,
    stop: () => server.remove(),
  };
};

/** pkcs11.toml as a database host has it. */
export const writeConfig = (
  folder: string,
  service: Pick<ServiceProcess, 'serverUrl' | 'accessToken' | 'caFile'>,
  extra = '',
): string => {
  const path = join(folder, 'pkcs11.toml');
  writeFileSync(
    path,
    `server_url = "${service.serverUrl}"\naccess_token = "${service.accessToken}"\nca_file = "${service.caFile}"\n` +
      `log_dir = "${join(folder, 'log')}"\n${patient(extra)}`,
  );
  chmodSync(path, 0o600);
  return path;
};

export interface Pkcs11Host {
  readonly folder: string;
  /** Driven by graphene-pk11 where it can express the call. */
  readonly pkcs11: pkcs11js.PKCS11;
  readonly ways: Ways;
  readonly slot: Buffer;
  readonly agent: AgentProcess;
  readonly service: ServiceProcess;
  /** A session of the logged-in user; read-write by default. */
  open(readWrite?: boolean): Buffer;
  stop(): Promise<void>;
}

/** Starts everything, loads the library, and logs in by default. */
export const startHost = async (
  options: { readonly login?: boolean; readonly config?: string } = {},
): Promise<Pkcs11Host> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-host-'));
  const service = await startService();
  const config = writeConfig(folder, service, options.config);
  const agent = await startAgent(folder, { environment: { DKE_PKCS11_CONF: config }, inFolder: true });
  process.env.DKE_PKCS11_CONF = config;
  process.env.DKE_PKCS11_SOCKET = agent.socket;
  const own = new pkcs11js.PKCS11();
  own.load(library);
  const { pkcs11, ways } = grapheneCalls(own);
  pkcs11.C_Initialize();
  const [slot] = pkcs11.C_GetSlotList(true);
  if (slot === undefined) throw new Error('no slot');
  const open = (readWrite = true): Buffer =>
    pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | (readWrite ? pkcs11js.CKF_RW_SESSION : 0));
  if (options.login !== false) pkcs11.C_Login(open(false), pkcs11js.CKU_USER, 'anything');
  return {
    folder,
    pkcs11,
    ways,
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
