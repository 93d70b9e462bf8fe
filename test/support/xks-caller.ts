// Signed calls to the XKS proxy of a running server, for suites that send bodies as bytes, right
// ones and wrong ones, over kept connections. Each answer is checked against the rules of the
// protocol for every answer: an errorName with its status, a message of printable ASCII below 512
// characters, JSON, a request id.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { signXksRequest } from './sign.ts';

export interface CallerAnswer {
  readonly status: number;
  /** Undefined when the call was answered with 200. */
  readonly errorName: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
}

export interface CallOptions {
  readonly method?: string;
  /** Sent next to the signed ones. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly unsigned?: boolean;
  readonly date?: Date;
  readonly region?: string;
  /** Sign with these instead. */
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
}

export type XksBody = string | Uint8Array | object;

export interface XksCaller {
  /** `target` is below the endpoint's path, for example `/health`. */
  send(configuration: ProxyConfiguration, target: string, body: XksBody, options?: CallOptions): Promise<CallerAnswer>;
  close(): void;
}

/**
 * errorName and the statuses it may come with (External Key Store Proxy API 1.0, and the refusals
 * of HTTP itself).
 */
const statusesOf: Readonly<Record<string, readonly number[]>> = {
  ValidationException: [400, 413],
  InvalidStateException: [400],
  InvalidCiphertextException: [400],
  InvalidKeyUsageException: [400],
  AuthenticationFailedException: [401],
  AccessDeniedException: [403],
  KeyNotFoundException: [404],
  InvalidUriPathException: [404, 405],
  ThrottlingException: [429],
  UnsupportedOperationException: [501],
  DependencyTimeoutException: [503],
  InternalException: [500],
};

const check = (answer: CallerAnswer, requestBody: string | Uint8Array): void => {
  const { status, body, text, headers } = answer;
  const wrong = (what: string): never => {
    throw new Error(`${what}: ${status} ${text}`);
  };
  if (headers['content-type'] !== 'application/json') wrong('an answer is not JSON');
  if (Number(headers['content-length']) !== Buffer.byteLength(text)) wrong('Content-Length is wrong');
  if (!/^[0-9a-f-]{36}$/.test(String(headers['x-request-id']))) wrong('an answer has no X-Request-Id');
  if (status === 200) {
    if ('errorName' in body) wrong('a good answer has an errorName');
    return;
  }
  const { errorName, errorMessage, ...others } = body;
  if (Object.keys(others).length > 0) wrong('an error has members of its own');
  if (!statusesOf[String(errorName)]?.includes(status)) wrong('errorName and status do not belong together');
  if (typeof errorMessage !== 'string' || !/^[\x20-\x7e]{1,511}$/.test(errorMessage))
    wrong('errorMessage is not below 512 printable characters');
  const plaintext = /"plaintext":"([^"]{8,})"/.exec(Buffer.from(requestBody).toString('latin1'))?.[1];
  if (plaintext !== undefined && text.includes(plaintext)) wrong('an error shows the plaintext');
};

const bytesOf = (body: XksBody): string | Uint8Array =>
  typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);

export const openXksCaller = (server: { readonly port: number; readonly caFile: string }): XksCaller => {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, ca: readFileSync(server.caFile) });
  return {
    send: async (configuration, target, content, options = {}) => {
      const body = bytesOf(content);
      const path = `${configuration.XksProxyUriPath}${target}`;
      const { AccessKeyId, RawSecretAccessKey } = configuration.XksProxyAuthenticationCredential;
      const signed = options.unsigned
        ? {}
        : await signXksRequest({
            host: `127.0.0.1:${server.port}`,
            path,
            body,
            accessKeyId: options.accessKeyId ?? AccessKeyId,
            secretAccessKey: options.secretAccessKey ?? RawSecretAccessKey,
            ...(options.date === undefined ? {} : { date: options.date }),
            ...(options.region === undefined ? {} : { region: options.region }),
          });
      const answer = await new Promise<CallerAnswer>((resolve, reject) => {
        const sent = request(
          {
            agent,
            host: '127.0.0.1',
            port: server.port,
            path,
            method: options.method ?? 'POST',
            headers: { ...signed, ...options.headers, 'content-length': Buffer.byteLength(body) },
          },
          (incoming) => {
            const parts: Buffer[] = [];
            incoming.on('data', (part: Buffer) => parts.push(part)).on('error', reject);
            incoming.on('end', () => {
              const text = Buffer.concat(parts).toString('utf8');
              const status = incoming.statusCode ?? 0;
              try {
                const parsed = JSON.parse(text) as Record<string, unknown>;
                const errorName = status === 200 ? undefined : String(parsed.errorName);
                resolve({ status, errorName, body: parsed, text, headers: incoming.headers });
              } catch {
                reject(new Error(`an answer is not JSON: ${status} ${text}`));
              }
            });
          },
        );
        sent.on('error', reject).end(body);
      });
      check(answer, body);
      return answer;
    },
    close: () => agent.destroy(),
  };
};

/** A complete requestMetadata without the members that are undefined in `overrides`. */
export const wholeMetadata = (overrides: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  awsPrincipalArn: 'arn:aws:iam::111122223333:user/alice',
  kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
  kmsOperation: 'Encrypt',
  kmsRequestId: randomUUID(),
  ...overrides,
});
