// The real `dke cloud` as a child process on a free port, and a gate in front of a proxy that can
// inject failures.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { KMSClient } from '@aws-sdk/client-kms';
import { endWithTest } from './children.ts';
import { commandPath } from './command.ts';

export interface CloudProcess {
  readonly url: string;
  readonly child: ChildProcess;
  readonly credentialsFile: string;
  readonly certificateFile: string;
  /** Everything it wrote to its standard error. */
  log(): string;
  stop(): Promise<number | null>;
}

/**
 * Longer than the cloud's 250 ms for a call by default, because these tests are not about the speed
 * of a loaded machine. `through`: a command that runs the cloud as its last arguments say.
 */
export const startCloudProcess = async (
  folder: string,
  proxyCa: string,
  budgetMs = 3000,
  through: readonly string[] = [],
): Promise<CloudProcess> => {
  const budget = ['--budget', String(budgetMs)];
  const args = ['cloud', '--data', join(folder, 'cloud'), '--port', '0', '--proxy-ca', proxyCa, ...budget];
  const [program = process.execPath, ...before] = [...through, process.execPath];
  const child = spawn(program, [...before, commandPath, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithTest(child);
  const gone = once(child, 'close');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  let url: string | undefined;
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('listening on ')) {
      url = line.slice('listening on '.length);
      break;
    }
  if (url === undefined) {
    await gone;
    throw new Error(`dke cloud ended: ${log}`);
  }
  child.stdout.resume();
  return {
    url,
    child,
    credentialsFile: join(folder, 'cloud/credentials'),
    certificateFile: join(folder, 'cloud/tls.crt'),
    log: () => log,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await gone;
      return child.exitCode;
    },
  };
};

export interface Gate {
  readonly url: string;
  /**
   * Where new connections go: to a port, to a port that never answers, or nowhere. Those that are
   * open end.
   */
  lead(to: number | 'silence' | 'end'): void;
  close(): Promise<void>;
}

/** A TCP listener on a port of its own that leads to another. */
export const openGate = async (port: number): Promise<Gate> => {
  let target: number | 'silence' | 'end' = port;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket));
  };
  const server = createServer((socket) => {
    keep(socket);
    if (target === 'end') socket.destroy();
    else if (typeof target === 'number') {
      const onward = dial(target, '127.0.0.1');
      keep(onward);
      socket.pipe(onward).pipe(socket);
      socket.once('close', () => onward.destroy());
      onward.once('close', () => socket.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead: (to) => {
      target = to;
      end();
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      end();
      await closed;
    },
  };
};

/** The cloud's own client, which asks once. */
export const kmsClientOf = ({ url, credentialsFile, certificateFile }: CloudProcess): KMSClient => {
  const text = readFileSync(credentialsFile, 'utf8');
  return new KMSClient({
    endpoint: url,
    region: 'us-east-1',
    credentials: {
      accessKeyId: /key_id = (\S+)/.exec(text)?.[1] ?? '',
      secretAccessKey: /access_key = (\S+)/.exec(text)?.[1] ?? '',
    },
    maxAttempts: 1,
    requestHandler: { httpsAgent: new Agent({ ca: readFileSync(certificateFile) }) },
  });
};
