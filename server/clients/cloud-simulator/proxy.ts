// Calls an external key store proxy as the cloud does (External Key Store Proxy API 1.0): signed
// POSTs, 250 ms for all of a call, connection and handshake included, and strict reading of what
// comes back. What it sends and gets is already sealed by a key of the cloud: nothing here is a
// customer's plaintext.

import { createHash } from 'node:crypto';
import { Agent, request } from 'node:https';
import { parseBase64, toBase64 } from '../../base/bytes.ts';
import { cloudOffer, faultOfAnswer, faultOfConnection } from '../../base/cloud-causes.ts';
import { signForProxy } from '../../base/sigv4-signer.ts';
import { complaintOfHealth, complaintOfMetadata, hasNoKeyManager, unusableKey } from '../../base/xks-answers.ts';
import type { CloudCrypto } from './crypto.ts';
import { ProxyFault } from './exceptions.ts';
import type { AccessKey } from './verify-kms-caller.ts';

const maxAnswerBytes = 64 * 1024;

export interface ProxyAddress {
  /** `https://name[:port]` */
  readonly uriEndpoint: string;
  readonly uriPath: string;
}

export interface Requester {
  readonly kmsRequestId: string;
  readonly kmsOperation: string;
  readonly awsPrincipalArn: string;
}

/** What a proxy made of a plaintext. */
export interface ProxyCiphertext {
  readonly iv: Buffer;
  readonly tag: Buffer;
  readonly metadata: Buffer;
  readonly ciphertext: Buffer;
}

export interface ProxyClient {
  health(by: Requester): Promise<void>;
  /** Throws the fault of a key that cannot be used for a KMS key. */
  checkKey(by: Requester, xksKeyId: string): Promise<void>;
  encrypt(by: KeyRequester, xksKeyId: string, plaintext: Uint8Array, aad: Uint8Array): Promise<ProxyCiphertext>;
  decrypt(by: KeyRequester, xksKeyId: string, sealed: ProxyCiphertext, aad: Uint8Array): Promise<Buffer>;
  close(): void;
}
export interface KeyRequester extends Requester {
  readonly kmsKeyArn: string;
}

type Members = Readonly<Record<string, unknown>>;

const parseAnswer = (operation: string, status: number, text: string): Members => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new ProxyFault('response', `the proxy answered ${status} without a JSON object`);
  const members = parsed as Members;
  if (status === 200) return members;
  const fault = faultOfAnswer(members.errorName, status, operation);
  throw new ProxyFault(fault, `the proxy answered ${status} ${String(members.errorName)}`);
};

const bytesOf = (answer: Members, name: string, fits: (length: number) => boolean): Buffer => {
  const value = answer[name];
  const bytes = typeof value === 'string' ? parseBase64(value) : null;
  if (bytes === null || !fits(bytes.length)) throw new ProxyFault('response', `${name} of the proxy's answer is wrong`);
  return bytes;
};

export interface ProxyOptions {
  readonly address: ProxyAddress;
  readonly key: AccessKey;
  /** PEM of the authorities to trust; those of the system when absent. */
  readonly ca: Buffer | undefined;
  readonly region: string;
  readonly clock: () => number;
  /** Milliseconds for a whole call; the cloud gives 250. */
  readonly budgetMs: number;
  /** Told how long each answer took. */
  readonly measured: (ms: number) => void;
}

type Call = (operation: string, members: object) => Promise<Members>;

/** One address of a proxy: signed POSTs over connections that stay open. */
const openConnections = (
  crypto: CloudCrypto,
  { address, key, ca, region, clock, budgetMs, measured }: ProxyOptions,
): { readonly call: Call; close(): void } => {
  const agent = new Agent({ keepAlive: true, ...cloudOffer, ...(ca === undefined ? {} : { ca }) });
  const base = new URL(address.uriEndpoint);

  const send = (operation: string, body: Buffer, deadline: AbortSignal): Promise<Members> =>
    new Promise((resolve, reject) => {
      const path = `${address.uriPath}${operation}`;
      let connected = false;
      const headers = signForProxy(crypto, key, { host: base.host, path, region, body }, clock());
      const sent = request({
        agent,
        host: base.hostname.replace(/^\[|\]$/g, ''),
        port: base.port === '' ? 443 : Number(base.port),
        method: 'POST',
        path,
        headers,
        signal: deadline,
      });
      const fail = (error: NodeJS.ErrnoException): void => {
        // The proxy may have closed an idle connection just now: that is not a fault of it.
        if (sent.reusedSocket && error.code === 'ECONNRESET' && !deadline.aborted)
          send(operation, body, deadline).then(resolve, reject);
        else if (deadline.aborted)
          reject(
            connected
              ? new ProxyFault('timed-out', `the proxy did not answer within ${budgetMs} ms`)
              : new ProxyFault('unreachable', `no connection to the proxy within ${budgetMs} ms`),
          );
        else {
          const code = error.code ?? 'no code';
          reject(new ProxyFault(faultOfConnection(code), `the call of the proxy failed (${code})`));
        }
      };
      sent.on('socket', (socket) => {
        if (!socket.connecting) connected = true;
        else
          socket.once('connect', () => {
            connected = true;
          });
      });
      sent.on('error', fail);
      sent.on('response', (answer) => {
        const parts: Buffer[] = [];
        let length = 0;
        answer.on('error', fail);
        answer.on('data', (part: Buffer) => {
          length += part.length;
          if (length <= maxAnswerBytes) parts.push(part);
          else {
            reject(new ProxyFault('response', 'the answer of the proxy is too large'));
            sent.destroy();
          }
        });
        answer.on('end', () => {
          try {
            resolve(parseAnswer(operation, answer.statusCode ?? 0, Buffer.concat(parts).toString('utf8')));
          } catch (error) {
            reject(error);
          }
        });
      });
      sent.end(body);
    });

  const call: Call = async (operation, members) => {
    const startedAt = performance.now();
    const body = Buffer.from(JSON.stringify(members));
    const answer = await send(operation, body, AbortSignal.timeout(budgetMs));
    measured(performance.now() - startedAt);
    return answer;
  };
  return { call, close: () => agent.destroy() };
};

const withAad = (aad: Uint8Array): object => (aad.length === 0 ? {} : { additionalAuthenticatedData: toBase64(aad) });

export const openProxy = (crypto: CloudCrypto, options: ProxyOptions): ProxyClient => {
  const { call, close } = openConnections(crypto, options);
  return {
    health: async ({ kmsRequestId, kmsOperation }) => {
      const answer = await call('/health', { requestMetadata: { kmsRequestId, kmsOperation } });
      const complaint = complaintOfHealth(answer);
      if (complaint !== undefined)
        throw new ProxyFault('response', `the answer to GetHealthStatus is malformed: ${complaint}`);
      if (hasNoKeyManager(answer)) throw new ProxyFault('no-key-manager', 'every external key manager is unavailable');
    },
    checkKey: async (requestMetadata, xksKeyId) => {
      const answer = await call(`/keys/${xksKeyId}/metadata`, { requestMetadata });
      const complaint = complaintOfMetadata(answer);
      if (complaint !== undefined)
        throw new ProxyFault('response', `the answer to GetKeyMetadata is malformed: ${complaint}`);
      const unusable = unusableKey(answer);
      if (unusable !== undefined) throw new ProxyFault('key-configuration', unusable);
    },
    encrypt: async (requestMetadata, xksKeyId, plaintext, aad) => {
      const answer = await call(`/keys/${xksKeyId}/encrypt`, {
        requestMetadata,
        plaintext: toBase64(plaintext),
        encryptionAlgorithm: 'AES_GCM',
        ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
        ...withAad(aad),
      });
      const sealed: ProxyCiphertext = {
        ciphertext: bytesOf(answer, 'ciphertext', (length) => length === plaintext.length),
        iv: bytesOf(answer, 'initializationVector', (length) => length === 12 || length === 16),
        tag: bytesOf(answer, 'authenticationTag', (length) => length === 16),
        metadata:
          answer.ciphertextMetadata === undefined
            ? Buffer.alloc(0)
            : bytesOf(answer, 'ciphertextMetadata', (length) => length <= 20),
      };
      const stated = bytesOf(answer, 'ciphertextDataIntegrityValue', (length) => length === 32);
      const hash = createHash('sha256');
      for (const part of [aad, sealed.metadata, sealed.iv, sealed.ciphertext, sealed.tag]) hash.update(part);
      if (!hash.digest().equals(stated))
        throw new ProxyFault('response', 'ciphertextDataIntegrityValue does not fit the ciphertext');
      return sealed;
    },
    decrypt: async (requestMetadata, xksKeyId, sealed, aad) => {
      const answer = await call(`/keys/${xksKeyId}/decrypt`, {
        requestMetadata,
        ciphertext: toBase64(sealed.ciphertext),
        initializationVector: toBase64(sealed.iv),
        authenticationTag: toBase64(sealed.tag),
        encryptionAlgorithm: 'AES_GCM',
        ...(sealed.metadata.length === 0 ? {} : { ciphertextMetadata: toBase64(sealed.metadata) }),
        ...withAad(aad),
      });
      return bytesOf(answer, 'plaintext', (length) => length === sealed.ciphertext.length);
    },
    close,
  };
};
