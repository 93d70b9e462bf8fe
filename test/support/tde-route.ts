// One call of the TDE API of a real server, as an agent sends it: over TLS, with an access_guid, in
// an envelope in both directions.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import {
  envelopeType,
  instanceText,
  packEnvelope,
  type TdeRoutes,
  tdeRoutes,
  unpackEnvelope,
} from '../../server/contract/tde.ts';
import { instance } from './open-service.ts';

/** The service answered with an error, and is there. */
export class Refused extends Error {
  readonly code: string;
  constructor(code: string, text: string) {
    super(text);
    this.code = code;
  }
}

export const callTdeRoute = <R extends keyof TdeRoutes>(
  server: { readonly url: string; readonly caFile: string },
  { accessGuid, appId }: { readonly accessGuid: string; readonly appId: string },
  route: R,
  head: TdeRoutes[R]['head'],
  { handle = 0, raw }: { readonly handle?: number; readonly raw?: Uint8Array } = {},
): Promise<{ readonly head: TdeRoutes[R]['answer']; readonly raw: Buffer }> =>
  new Promise((resolve, reject) => {
    const path = tdeRoutes[route].path.replace(':handle', String(handle));
    const sent = request(
      new URL(`/tde/v1/${accessGuid}/${appId}${path}`, server.url),
      {
        method: 'POST',
        ca: readFileSync(server.caFile),
        agent: false,
        headers: {
          authorization: `Bearer ${accessGuid}`,
          'content-type': envelopeType,
          'x-request-id': 'faults',
          'x-dke-instance': instanceText(instance),
        },
      },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part)).on('error', reject);
        answer.on('end', () => {
          const body = Buffer.concat(parts);
          if (answer.headers['content-type'] === envelopeType)
            return resolve(unpackEnvelope(body) as { head: TdeRoutes[R]['answer']; raw: Buffer });
          const text = body.toString('utf8');
          try {
            reject(new Refused(String((JSON.parse(text) as { code?: unknown }).code), text));
          } catch (error) {
            reject(error as Error);
          }
        });
      },
    );
    sent.on('error', reject);
    sent.end(packEnvelope(head, raw));
  });
