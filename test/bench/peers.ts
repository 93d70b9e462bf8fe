// The peers that PKCS#11 figures are measured next to: SoftHSM2 in the measuring process, and
// p11-kit's server and client over SoftHSM2. Both are Debian's packages. Each lives in a temporary
// directory of its own.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface Peer {
  readonly name: string;
  readonly library: string;
  readonly pin: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The process on the other side of the socket, where there is one. */
  readonly pid: number | undefined;
  stop(): void;
}

export const softHsm = 'SoftHSM2 in-process';
export const p11Kit = 'p11-kit server + SoftHSM2';

const softHsmLibrary = '/usr/lib/softhsm/libsofthsm2.so';
const p11KitClient = `/usr/lib/${execFileSync('gcc', ['-print-multiarch'], { encoding: 'utf8' }).trim()}/pkcs11/p11-kit-client.so`;

const softHsmToken = (): { readonly directory: string; readonly environment: Readonly<Record<string, string>> } => {
  const directory = mkdtempSync(join(tmpdir(), 'softhsm-'));
  mkdirSync(join(directory, 'tokens'));
  const configuration = join(directory, 'softhsm2.conf');
  writeFileSync(
    configuration,
    `directories.tokendir = ${directory}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n`,
  );
  const environment = { SOFTHSM2_CONF: configuration };
  execFileSync('softhsm2-util', ['--init-token', '--free', '--label', 'bench', '--pin', '1234', '--so-pin', '1234'], {
    env: { ...process.env, ...environment },
    stdio: 'ignore',
  });
  return { directory, environment };
};

export const startSoftHsm = (): Peer => {
  const { directory, environment } = softHsmToken();
  return {
    name: softHsm,
    library: softHsmLibrary,
    pin: '1234',
    environment,
    pid: undefined,
    stop: () => rmSync(directory, { recursive: true, force: true }),
  };
};

export const startP11KitServer = async (): Promise<Peer> => {
  const { directory, environment } = softHsmToken();
  const child = spawn(
    'p11-kit',
    ['server', '--foreground', '--name', join(directory, 'socket'), '--provider', softHsmLibrary, 'pkcs11:token=bench'],
    {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('P11_KIT_SERVER_ADDRESS')) break;
  return {
    name: p11Kit,
    library: p11KitClient,
    pin: '1234',
    environment: { ...environment, P11_KIT_SERVER_ADDRESS: `unix:path=${join(directory, 'socket')}` },
    pid: child.pid,
    stop: () => {
      child.kill('SIGTERM');
      rmSync(directory, { recursive: true, force: true });
    },
  };
};
