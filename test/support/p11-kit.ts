// Debian's p11-kit and SoftHSM2 as independent halves of the wire, where they are installed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const softhsm = ['/usr/lib/softhsm/libsofthsm2.so', '/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so'].find(
  existsSync,
);
export const client = [
  '/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so',
  '/usr/lib64/pkcs11/p11-kit-client.so',
].find(existsSync);

const has = (command: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** Null when `p11-kit server` can run over SoftHSM2 here, else what is missing. */
export const missingForServer = (): string | null => {
  if (softhsm === undefined || !has('softhsm2-util')) return 'softhsm2';
  return has('p11-kit') ? null : 'p11-kit';
};

/**
 * The answers of another version to calls with wrong parameters are not recorded. Undefined when it
 * is 0.24.
 */
export const whyNoComparison = (): string | undefined => {
  const library = ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'].map((at) => `${at}/libp11-kit.so.0`).find(existsSync);
  const file = library === undefined ? 'unknown' : basename(realpathSync(library));
  return file === 'libp11-kit.so.0.3.0' ? undefined : `the recorded answers are of p11-kit 0.24, this is ${file}`;
};

export interface Server {
  readonly socket: string;
  stop(): Promise<void>;
}

/** `p11-kit server` over a fresh token whose user PIN is 1234. */
export const startServer = async (folder: string): Promise<Server> => {
  const conf = join(folder, 'softhsm2.conf');
  const socket = join(folder, 'p11-kit.sock');
  mkdirSync(join(folder, 'tokens'));
  writeFileSync(conf, `directories.tokendir = ${join(folder, 'tokens')}\nobjectstore.backend = file\n`);
  const env = { ...process.env, SOFTHSM2_CONF: conf };
  const token = ['--init-token', '--free', '--label', 'peer', '--pin', '1234', '--so-pin', '12345678'];
  execFileSync('softhsm2-util', token, { env, stdio: 'ignore' });
  const child: ChildProcess = spawn('p11-kit', ['server', '-f', '--provider', softhsm ?? '', '-n', socket, 'pkcs11:'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The server prints its address once it listens.
  await Promise.race([
    once(child.stdout ?? child, 'data'),
    once(child, 'exit').then(() => {
      throw new Error('p11-kit server ended before it listened');
    }),
  ]);
  return {
    socket,
    async stop() {
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    },
  };
};
