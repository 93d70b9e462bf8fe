// Another vendor's external key store proxy, for tests of the cloud's side: it follows the protocol
// with its own key, unless a test scripts something else. Each store has its own path, so that a
// script affects only one store.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { IssuedCertificate } from './authority.ts';

export type ProxyOperation = 'health' | 'metadata' | 'encrypt' | 'decrypt';
export type Json = Readonly<Record<string, unknown>>;
export interface ProxyRequest {
  readonly operation: ProxyOperation;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: Json;
}
/** Answers a request; `good` is the answer according to the protocol. */
export type Misdeed = (outgoing: ServerResponse, good: () => Json, request: ProxyRequest) => void;

export interface ScriptedProxy {
  readonly url: string;
  readonly port: number;
  /** Every request so far. */
  readonly requests: readonly ProxyRequest[];
  /** From the next request with this prefix; undefined: according to the protocol. */
  tell(prefix: string, misdeed: Misdeed | undefined): void;
  /** New connections are shown this certificate; those that are open end. */
  show(certificate: IssuedCertificate): void;
  close(): Promise<void>;
}

export const answerWith = (outgoing: ServerResponse, status: number, body: Json | string): void => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  outgoing
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
};

const bytes = (value: unknown): Buffer => Buffer.from(String(value ?? ''), 'base64');
const base64 = (value: Buffer): string => value.toString('base64');

/** The protocol's AAD for AES-GCM, without metadata. */
const bound = (aad: Buffer): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(aad.length);
  return Buffer.concat([length, aad, Buffer.from([0])]);
};

const behave = (key: Buffer, { operation, body }: ProxyRequest): Json => {
  if (operation === 'health')
    return {
      xksProxyFleetSize: 2,
      xksProxyVendor: 'Other',
      xksProxyModel: 'Other 1',
      ekmVendor: 'Other',
      ekmFleetDetails: [
        { id: 'a', model: 'm', healthStatus: 'ACTIVE' },
        { id: 'b', model: 'm', healthStatus: 'UNAVAILABLE' },
      ],
    };
  if (operation === 'metadata')
    return { keySpec: 'AES_256', keyUsage: ['ENCRYPT', 'DECRYPT', 'WRAP'], keyStatus: 'ENABLED' };
  const aad = bytes(body.additionalAuthenticatedData);
  if (operation === 'encrypt') {
    // An IV of 16 bytes, which the protocol also allows.
    const iv = randomBytes(16);
    const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: 16 }).setAAD(bound(aad));
    const ciphertext = Buffer.concat([cipher.update(bytes(body.plaintext)), cipher.final()]);
    const tag = cipher.getAuthTag();
    const integrity = createHash('sha256')
      .update(Buffer.concat([aad, iv, ciphertext, tag]))
      .digest();
    return {
      ciphertext: base64(ciphertext),
      initializationVector: base64(iv),
      authenticationTag: base64(tag),
      ciphertextDataIntegrityValue: base64(integrity),
    };
  }
  const decipher = createDecipheriv('aes-256-gcm', key, bytes(body.initializationVector), { authTagLength: 16 });
  decipher.setAAD(bound(aad)).setAuthTag(bytes(body.authenticationTag));
  return { plaintext: base64(Buffer.concat([decipher.update(bytes(body.ciphertext)), decipher.final()])) };
};

export const startScriptedProxy = async (certificate: IssuedCertificate): Promise<ScriptedProxy> => {
  const key = randomBytes(32);
  const misdeeds = new Map<string, Misdeed>();
  const requests: ProxyRequest[] = [];
  const sockets = new Set<Socket>();
  const pair = ({ certificate: cert, key: keyFile }: IssuedCertificate) => ({
    cert: readFileSync(cert),
    key: readFileSync(keyFile),
  });
  const server: Server = createServer(pair(certificate), (incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('error', () => undefined);
    incoming.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      const path = incoming.url ?? '';
      const request: ProxyRequest = {
        operation: (/\w+$/.exec(path)?.[0] ?? 'health') as ProxyOperation,
        path,
        headers: incoming.headers,
        text,
        body: JSON.parse(text) as Json,
      };
      requests.push(request);
      const good = (): Json => behave(key, request);
      const misdeed = misdeeds.get(path.split('/')[1] ?? '');
      if (misdeed === undefined) answerWith(outgoing, 200, good());
      else misdeed(outgoing, good, request);
    });
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    url: `https://127.0.0.1:${port}`,
    requests,
    tell: (prefix, misdeed) => {
      if (misdeed === undefined) misdeeds.delete(prefix);
      else misdeeds.set(prefix, misdeed);
    },
    show: (next) => {
      server.setSecureContext(pair(next));
      end();
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      end();
      await closed;
    },
  };
};
