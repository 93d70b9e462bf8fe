// A service over HTTPS whose answer to each request is scripted by the test.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type IssuedCertificate, makeAuthority } from './authority.ts';

interface ScriptedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, unless it is text. */
  readonly body?: unknown;
}
/**
 * 'lost': the connection ends before an answer; 'cut': in the middle of it; 'silent': no answer.
 */
export type Script = ScriptedAnswer | NoAnswer | ((request: ScriptedRequest) => ScriptedAnswer | NoAnswer);
type NoAnswer = 'lost' | 'cut' | 'silent';

/** Certificates that new connections may meet: `own` is the one that `ca` has signed. */
export const presented = ['own', 'untrusted', 'other-name', 'expired'] as const;

export interface ScriptedService {
  readonly url: string;
  readonly port: number;
  readonly ca: Buffer;
  /** Every request since the last script. */
  readonly requests: ScriptedRequest[];
  /** What the next requests are answered; the last one for all that follow. */
  script(...answers: Script[]): void;
  /** The certificate of new connections. */
  present(which: (typeof presented)[number]): void;
  close(): Promise<void>;
}

export const openScriptedService = async (): Promise<ScriptedService> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-scripted-'));
  const authority = makeAuthority(folder, 'authority');
  const ours = {
    commonName: 'localhost',
    names: ['DNS:localhost', 'IP:127.0.0.1'],
    usage: 'serverAuth',
  } as const;
  const { certificate, key } = authority.issue(ours);
  const issue: Readonly<Record<(typeof presented)[number], () => IssuedCertificate>> = {
    own: () => ({ certificate, key }),
    untrusted: () => makeAuthority(folder, 'other').issue(ours),
    'other-name': () => authority.issue({ ...ours, names: ['DNS:other.example'] }),
    expired: () => authority.issue({ ...ours, notBefore: '20250101000000Z', notAfter: '20250201000000Z' }),
  };
  const requests: ScriptedRequest[] = [];
  let answers: Script[] = [];
  const server = createServer(
    { cert: readFileSync(certificate), key: readFileSync(key) },
    async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const { method = '', url: path = '', headers } = request;
      const received = { method, path, headers, body: Buffer.concat(parts).toString('utf8') };
      requests.push(received);
      const next = answers.length > 1 ? answers.shift() : answers[0];
      const script = typeof next === 'function' ? next(received) : next;
      if (script === 'silent') return;
      if (script === undefined || script === 'lost') {
        request.socket.destroy();
        return;
      }
      if (script === 'cut') {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
        response.write('{"items":', () => request.socket.destroy());
        return;
      }
      const { status = 200, headers: more = {}, body } = script;
      response.writeHead(status, {
        'content-type': status > 399 ? 'application/problem+json' : 'application/json',
        ...more,
      });
      response.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body));
    },
  );
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    ca: Buffer.from(authority.pem),
    requests,
    script: (...next) => {
      requests.length = 0;
      answers = next;
    },
    present: (which) => {
      const next = issue[which]();
      server.setSecureContext({ cert: readFileSync(next.certificate), key: readFileSync(next.key) });
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<unknown>((done) => server.close(done));
      rmSync(folder, { recursive: true });
    },
  };
};
