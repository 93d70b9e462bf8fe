// Sink `https`: posts batches as a JSON array of OCSF events (ocsf.ts). A batch counts when it was
// answered with 2xx; redirects are not followed. A batch that is refused is sent again in smaller
// ones (forward-to-sink.ts).

import type { Agent } from 'undici';
import { lookupWithin } from '../../base/name-lookup.ts';
import { callOutside, ItemRefused, requireAccepted, skipAnswer } from '../../base/outside.ts';
import { maskUrl } from '../../base/redaction.ts';
import type { LogSink } from '../../ports/log-sink.ts';
import { toOcsf } from './ocsf.ts';
import { readSinkTls, type SinkTls } from './tls.ts';

export interface HttpsSinkOptions extends SinkTls {
  readonly name: string;
  readonly url: string;
  /** File with a bearer token. */
  readonly tokenFile: string | undefined;
  readonly version: string;
}

const timeoutMs = 10_000;

export const openHttpsSink = (options: HttpsSinkOptions): LogSink => {
  const { name, url, tokenFile, version, read } = options;
  const stopping = new AbortController();
  const target = new URL(url);
  // Loaded when there is such a sink, at the start: loading takes too long while requests are
  // served.
  const library = import('undici');
  const openAgent = async ({ Agent }: typeof import('undici')): Promise<Agent> =>
    new Agent({
      connections: 1,
      connect: {
        timeout: timeoutMs,
        lookup: lookupWithin(timeoutMs * 0.8),
        minVersion: 'TLSv1.2',
        ...(await readSinkTls(options)),
      },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  let agent: Agent | undefined;

  return {
    name,
    type: 'https',
    target: maskUrl(url),
    wholeLogs: false,
    send: async (items, log) => {
      const undici = await library;
      agent ??= await openAgent(undici);
      const dispatcher = agent;
      try {
        await callOutside({ place: target.host, totalMs: timeoutMs, stopping: stopping.signal }, async (signal) => {
          const token = tokenFile === undefined ? undefined : (await read(tokenFile)).toString('latin1').trim();
          const { statusCode, body } = await undici.request(target, {
            method: 'POST',
            dispatcher,
            signal,
            headers: {
              'content-type': 'application/json',
              'user-agent': `dke/${version}`,
              ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            },
            body: JSON.stringify(items.map((item) => toOcsf(item, log, version))),
          });
          await skipAnswer(body);
          requireAccepted(statusCode, target.host);
        });
      } catch (error) {
        if (error instanceof ItemRefused) throw error;
        // Certificates and tokens are read again, whatever the reason was.
        agent = undefined;
        await dispatcher.destroy().catch(() => undefined);
        throw error;
      }
    },
    close: async () => {
      stopping.abort();
      await agent?.destroy();
    },
  };
};
