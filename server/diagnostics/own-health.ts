// What the service of this host answers at /health: asked by its configuration, over its own port.

import type { X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Config } from '../config/config.ts';

export interface OwnHealth {
  readonly statusCode: number | undefined;
  /** `healthy`, `degraded`, `unhealthy`, `sealed` or `quarantine`; empty when the answer is not the service's. */
  readonly status: string;
  readonly certificate: X509Certificate | undefined;
}

const longestAnswer = 1024;
const loopback: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const statusOf = (text: string): string => /^\{"status":"([a-z]{1,20})"\}$/.exec(text)?.[1] ?? '';

/** Rejects with the error of the connection; ETIMEDOUT when there is no answer in time. */
export const askOwnHealth = (
  { server: { host, port, publicNames } }: Pick<Config, 'server'>,
  timeoutMs: number,
): Promise<OwnHealth> =>
  new Promise((resolve, reject) => {
    const [servername = 'localhost'] = publicNames;
    const sent = request({
      host: loopback[host] ?? host,
      port,
      path: '/health',
      agent: false,
      ...(isIP(servername) === 0 ? { servername } : {}),
      // Nothing secret is sent, and the issuer may be known to clients only. The caller compares the certificate when it matters.
      rejectUnauthorized: false,
    });
    sent.once('response', (answer) => {
      const certificate = (answer.socket as TLSSocket).getPeerX509Certificate();
      let text = '';
      answer.setEncoding('latin1').on('data', (chunk: string) => {
        text = `${text}${chunk}`.slice(0, longestAnswer);
      });
      answer.once('error', reject);
      answer.once('end', () => resolve({ statusCode: answer.statusCode, status: statusOf(text), certificate }));
    });
    // In total: an answer that drips is none.
    const timer = setTimeout(
      () => sent.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })),
      timeoutMs,
    );
    sent.once('close', () => clearTimeout(timer));
    sent.once('error', reject);
    sent.end();
  });
