// The diagnostics' hands: calls one endpoint through its public name or straight at this node,
// signed as the cloud key service signs, and tells what came back and how long it took. The
// plaintext is generated here and is not secret.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { cloudOffer } from '../../base/cloud-causes.ts';
import { lookupWithin } from '../../base/name-lookup.ts';
import { callOutside, endedBy, readAnswer } from '../../base/outside.ts';
import { diagnosticsOperation, type ProbeMarks, probeMarkHeader } from '../../base/probe-mark.ts';
import { type SignerCrypto, type SignerKey, signForProxy } from '../../base/sigv4-signer.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';

/** Where calls go: through everything that is in front of this node, or past it. */
export type View = 'public' | 'node';

export interface ProbeAnswer {
  readonly status: number;
  /** Undefined when the body is not a JSON object. */
  readonly members: Readonly<Record<string, unknown>> | undefined;
  readonly durationMs: number;
  /** Whether an open connection was used again. */
  readonly reused: boolean;
}

export interface Prober {
  get(view: View, path: string): Promise<ProbeAnswer>;
  /** `target` is below the endpoint's path, for example `/health`. */
  post(view: View, target: string, body: object, key: SignerKey<KeyRef>): Promise<ProbeAnswer>;
  /** Sends a request as `post` does, with a signature that is wrong in its last digit. */
  forge(view: View, target: string, body: object, key: SignerKey<KeyRef>): Promise<ProbeAnswer>;
  /** Ids of the requests made so far. */
  requestIds(): readonly string[];
  close(): void;
}

/**
 * What is in requestMetadata of a diagnostic request: the log tells it from others by its
 * operation.
 */
export const diagnosticMetadata = (): object => ({
  awsPrincipalArn: 'arn:aws:iam::000000000000:user/dke-diagnostics',
  kmsKeyArn: 'arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000',
  kmsOperation: diagnosticsOperation,
  kmsRequestId: randomUUID(),
});

/** Longer than the cloud waits: what is slow shall be measured, not given up. */
const timeoutMs = 5_000;
const longestAnswer = 256 * 1024;

const objectOf = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
};

export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');
export const portOf = (url: URL): number => (url.port === '' ? 443 : Number(url.port));

export interface ProberOptions {
  readonly crypto: SignerCrypto<KeyRef>;
  readonly publicUrl: URL;
  readonly node: { readonly host: string; readonly port: number };
  readonly uriPath: string;
  /** Makes the marks by which the service recognizes its own requests. */
  readonly marks: Pick<ProbeMarks, 'make'>;
  /** PEM certificates that are trusted behind the public name. */
  readonly trust: readonly string[];
  readonly now: () => number;
}

export const openProber = (options: ProberOptions): Prober => {
  const { crypto, publicUrl, node, uriPath, marks } = options;
  const requestIds: string[] = [];
  const agents: Readonly<Record<View, Agent>> = {
    public: new Agent({ keepAlive: true, maxSockets: 1, ca: [...options.trust], ...cloudOffer }),
    // The identity of this node is checked elsewhere; its certificate is for the public name.
    node: new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false }),
  };

  const send = (
    view: View,
    method: 'GET' | 'POST',
    path: string,
    headers: Record<string, string>,
    body: Buffer | undefined,
  ): Promise<ProbeAnswer> => {
    const startedAt = performance.now();
    const place =
      view === 'public' ? { host: hostOf(publicUrl), port: portOf(publicUrl) } : { host: node.host, port: node.port };
    const sent = request({ ...place, agent: agents[view], method, path, headers, lookup: lookupWithin(timeoutMs) });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('error', reject);
      sent.once('response', resolve);
    });
    const read = async (): Promise<ProbeAnswer> => {
      sent.end(body);
      const answer = await answered;
      const requestId = answer.headers['x-request-id'];
      if (typeof requestId === 'string') requestIds.push(requestId);
      const bytes = await readAnswer(answer, longestAnswer, place.host);
      return {
        status: answer.statusCode ?? 0,
        members: objectOf(Buffer.from(bytes).toString('utf8')),
        durationMs: performance.now() - startedAt,
        reused: sent.reusedSocket,
      };
    };
    // Not by a signal of its own: what is left open carries the next request.
    return callOutside({ place: place.host, totalMs: timeoutMs }, (ended) =>
      endedBy(ended, (reason) => sent.destroy(reason), read()),
    );
  };

  const sign = (target: string, content: object, key: SignerKey<KeyRef>) => {
    const body = Buffer.from(JSON.stringify(content));
    const path = `${uriPath}${target}`;
    const request = { host: publicUrl.host, path, region: 'us-east-1', body };
    const headers = { ...signForProxy(crypto, key, request, options.now()), [probeMarkHeader]: marks.make(path) };
    return { path, body, headers: headers as Record<string, string> };
  };

  return {
    get: (view, path) => send(view, 'GET', path, { host: publicUrl.host }, undefined),
    post: (view, target, content, key) => {
      const { path, headers, body } = sign(target, content, key);
      return send(view, 'POST', path, headers, body);
    },
    forge: (view, target, content, key) => {
      const { path, headers, body } = sign(target, content, key);
      const authorization = headers.authorization ?? '';
      const forged = authorization.slice(0, -1) + (authorization.endsWith('0') ? '1' : '0');
      return send(view, 'POST', path, { ...headers, authorization: forged }, body);
    },
    requestIds: () => requestIds,
    close: () => {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
};
