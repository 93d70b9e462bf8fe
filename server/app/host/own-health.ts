// What the service of this host answers at /health: asked by its configuration, over its own port.

import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { callOutside, endedBy, readAnswer } from '../../base/outside.ts';
import type { Config } from '../config/config.ts';

export interface OwnHealth {
  readonly statusCode: number | undefined;
  /**
   * `healthy`, `degraded`, `unhealthy`, `sealed` or `quarantine`; empty when the answer is not the
   * service's.
   */
  readonly status: string;
  readonly certificate: X509Certificate | undefined;
}

const longestAnswer = 1024;
const loopback: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const statusOf = (text: string): string => /^\{"status":"([a-z]{1,20})"\}$/.exec(text)?.[1] ?? '';

/** Rejects with the error of the connection; ETIMEDOUT when there is no complete answer in time. */
export const askOwnHealth = async (
  { server: { host, port, publicNames } }: Pick<Config, 'server'>,
  timeoutMs: number,
): Promise<OwnHealth> => {
  const [servername = 'localhost'] = publicNames;
  const sent = request({
    host: loopback[host] ?? host,
    port,
    path: '/health',
    agent: false,
    ...(isIP(servername) === 0 ? { servername } : {}),
    // Nothing secret is sent, and the issuer may be known to clients only. The caller compares the
    // certificate when it matters.
    rejectUnauthorized: false,
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('error', reject);
    sent.once('response', resolve);
  });
  const read = async (): Promise<OwnHealth> => {
    sent.end();
    const answer = await answered;
    const certificate = (answer.socket as TLSSocket).getPeerX509Certificate();
    const text = Buffer.from(await readAnswer(answer, longestAnswer, host)).toString('latin1');
    return { statusCode: answer.statusCode, status: statusOf(text), certificate };
  };
  const late = Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' });
  try {
    return await callOutside({ place: host, totalMs: timeoutMs }, (ended) =>
      endedBy(ended, () => sent.destroy(late), read()),
    );
  } catch (error) {
    throw sent.errored === late ? late : error;
  } finally {
    sent.destroy();
  }
};
