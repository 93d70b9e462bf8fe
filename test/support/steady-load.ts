// Steady calls of a cloud to an endpoint, from a process of its own (bench/xks-load.ts), until they
// are stopped.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { LoadJob, LoadReport } from '../bench/xks-load.ts';
import { endWithTest } from './children.ts';
import type { ServerProcess } from './server-process.ts';
import type { XksEndpoint } from './xks-call.ts';
import { requestMetadata, signXksCall } from './xks-client.ts';

const program = join(import.meta.dirname, '../bench/xks-load.ts');

export interface SteadyLoad {
  /** Waits for the answers under way. */
  stop(): Promise<LoadReport>;
}

export const startSteadyLoad = async (
  server: Pick<ServerProcess, 'port' | 'caFile'>,
  { endpoint, configuration }: Pick<XksEndpoint, 'endpoint' | 'configuration'>,
  pace: { readonly perSecond: number; readonly connections: number },
): Promise<SteadyLoad> => {
  const body = JSON.stringify({
    requestMetadata: requestMetadata(),
    plaintext: Buffer.alloc(32, 0x5a).toString('base64'),
    encryptionAlgorithm: 'AES_GCM',
  });
  const { path, headers } = await signXksCall({ server, configuration }, `/keys/${endpoint.keyId}/encrypt`, body);
  const job: LoadJob = {
    ...pace,
    port: server.port,
    path,
    headers,
    body,
    seconds: null,
    waits: true,
    warmUpSeconds: 0,
  };
  const child = spawn(process.execPath, [program, JSON.stringify(job)], { stdio: ['pipe', 'pipe', 'inherit'] });
  endWithTest(child);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await Promise.race([once(child.stdout, 'data'), ended]);
  return {
    stop: async () => {
      child.stdin.end();
      await ended;
      const [, report = ''] = text.split('\n');
      if (report === '') throw new Error(`the load ended with ${child.exitCode ?? child.signalCode}, without a report`);
      return JSON.parse(report) as LoadReport;
    },
  };
};
