// Signed calls to the XKS proxy over connections of the test's own making: client certificates,
// names, HTTP/2, a socket on which something was sent before. Signed by @smithy/signature-v4, which
// shares no code with the verifier.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import type { Socket } from 'node:net';
import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { signXksRequest } from './sign.ts';

export interface XksAnswer {
  readonly status: number;
  readonly body: { readonly [member: string]: unknown };
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface XksPlace {
  readonly server: { readonly port: number; readonly caFile: string };
  readonly configuration: ProxyConfiguration;
}

export interface XksCallOptions {
  /** Below the endpoint's path, for example `/health`. */
  readonly target: string;
  readonly body: object;
  /** PEM files. */
  readonly client?: { readonly certificate: string; readonly key: string };
  readonly agent?: Agent;
  /** A connected socket to speak TLS over. */
  readonly socket?: Socket;
}

/** The default content of requestMetadata. */
export const requestMetadata = (overrides: object = {}): object => ({
  awsPrincipalArn: 'arn:aws:iam::111122223333:user/alice',
  kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
  kmsOperation: 'Encrypt',
  kmsRequestId: randomUUID(),
  ...overrides,
});

export const signXksCall = async ({ server, configuration }: XksPlace, target: string, body: string) => {
  const path = `${configuration.XksProxyUriPath}${target}`;
  const { AccessKeyId, RawSecretAccessKey } = configuration.XksProxyAuthenticationCredential;
  const headers = await signXksRequest({
    host: `127.0.0.1:${server.port}`,
    path,
    body,
    accessKeyId: AccessKeyId,
    secretAccessKey: RawSecretAccessKey,
  });
  return { path, headers };
};

export const callXks = async (place: XksPlace, options: XksCallOptions): Promise<XksAnswer> => {
  const body = JSON.stringify(options.body);
  const { path, headers } = await signXksCall(place, options.target, body);
  const { client, socket, agent } = options;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: place.server.port,
        path,
        method: 'POST',
        headers,
        ca: readFileSync(place.server.caFile),
        agent: agent ?? new Agent(),
        ...(client === undefined ? {} : { cert: readFileSync(client.certificate), key: readFileSync(client.key) }),
        ...(socket === undefined ? {} : { socket }),
      },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: JSON.parse(text) as XksAnswer['body'],
          }),
        );
      },
    );
    sent.on('error', reject).end(body);
  });
};

/** Calls like `callXks`, but over HTTP/2; closes the connection afterwards. */
export const callXksOverHttp2 = async (
  place: XksPlace,
  options: Pick<XksCallOptions, 'target' | 'body'>,
): Promise<XksAnswer> => {
  const body = JSON.stringify(options.body);
  const { path, headers } = await signXksCall(place, options.target, body);
  const { host, ...others } = headers;
  const session = connectHttp2(`https://127.0.0.1:${place.server.port}`, { ca: readFileSync(place.server.caFile) });
  try {
    return await new Promise((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({ ':method': 'POST', ':path': path, ':authority': host ?? '', ...others });
      let text = '';
      let answered: Readonly<Record<string, unknown>> = {};
      stream.on('response', (received) => {
        answered = received;
      });
      stream.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      stream.on('error', reject);
      stream.on('end', () =>
        resolve({
          status: Number(answered[':status']),
          headers: answered,
          body: JSON.parse(text) as XksAnswer['body'],
        }),
      );
      stream.end(body);
    });
  } finally {
    session.close();
  }
};
