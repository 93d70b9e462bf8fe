// The candidate: the built server, the built library, and the agent that the library starts.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  type ConsoleApi,
  createGroup,
  openConsoleApi,
  registerApplication,
  writeProviderConfig,
} from '../support/console-api.ts';
import { endProcess, processesWith } from '../support/host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import type { Peer } from './peers.ts';

const root = resolve(import.meta.dirname, '../..');

export interface XksTarget {
  readonly url: string;
  readonly host: string;
  readonly path: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface Ours extends Peer {
  readonly server: ServerProcess;
  readonly xks: XksTarget;
  readonly api: ConsoleApi;
  /** The agent's process, once the library has started it. */
  agentPid(): number;
  /** Requests that the request log had no room for. */
  unrecorded(): Promise<number>;
  close(): Promise<void>;
}

export const ourName = 'DKE';

/** `checkout`: a built copy of the project, this one when absent. */
export const startOurs = async (name = ourName, checkout = root): Promise<Ours> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-bench-'));
  const socket = join(folder, 'agent.sock');
  const server = await startServerProcess({
    folder,
    program: [join(checkout, 'dist/server/cli/main.js'), 'server'],
    toml: '[log]\nlevel = "warn"\ndestination = "server.log"\n',
  });
  const api = openConsoleApi(server, server.adminToken);
  const { call } = api;

  const registered = await registerApplication(api, 'bench', await createGroup(api, 'bench'));
  const configuration = writeProviderConfig(join(folder, 'pkcs11.toml'), registered, {
    caFile: server.caFile,
    logDir: join(folder, 'log'),
  });

  const vault = await call<{ id: string }>('POST', '/api/vaults', { name: 'bench' });
  const key = await call<{ id: string }>('POST', '/api/keys', { name: 'bench', vaultId: vault.id });
  const made = { name: 'bench', vaultId: vault.id, keyId: key.id };
  const endpoint = await call<{ id: string; uriPath: string }>('POST', '/api/endpoints', made);
  const { XksProxyAuthenticationCredential: credential } = await call<{
    XksProxyAuthenticationCredential: { AccessKeyId: string; RawSecretAccessKey: string };
  }>('POST', `/api/endpoints/${endpoint.id}/credentials`);
  const path = `${endpoint.uriPath}/keys/${key.id}/encrypt`;

  const agents = () => processesWith(socket).filter(([, line]) => line.includes('--socket'));
  const takeAlong = (): void => {
    for (const [pid] of agents()) process.kill(pid);
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', takeAlong);
  return {
    name,
    library: join(checkout, 'build/provider/1.0/libdke_pkcs11.so'),
    pin: 'any',
    environment: { DKE_PKCS11_CONF: configuration, DKE_PKCS11_SOCKET: socket },
    pid: undefined,
    stop: () => undefined,
    server,
    api,
    xks: {
      url: `${server.url}${path}`,
      host: new URL(server.url).host,
      path,
      accessKeyId: credential.AccessKeyId,
      secretAccessKey: credential.RawSecretAccessKey,
    },
    agentPid: () => {
      const [first] = agents();
      if (first === undefined) throw new Error('the agent is not running');
      return first[0];
    },
    unrecorded: async () => (await call<{ requestLog: { dropped: number } }>('GET', '/api/status')).requestLog.dropped,
    close: async () => {
      process.off('exit', takeAlong);
      for (const [pid] of agents()) await endProcess(pid);
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
