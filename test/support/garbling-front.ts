// A front before the real service whose answers are not what the contract says: it passes the first
// GETs on, and answers everything behind them in one of these ways. A request that would change
// something never reaches the service.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as forward } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority } from './authority.ts';

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}
const json = (body: string, status = 200): Answer => ({ status, type: 'application/json', body });
/** What stands where each value was. */
const withValues = (value: unknown, put: (leaf: unknown) => unknown): unknown => {
  if (Array.isArray(value)) return value.map((each) => withValues(each, put));
  if (typeof value !== 'object' || value === null) return put(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      name === 'id' || name === 'name' || name === 'next' ? each : withValues(each, put),
    ]),
  );
};

export type Garbled = Answer | 'lost' | 'cut' | ((leaf: unknown) => unknown);
export const garbled: Readonly<Record<string, Garbled>> = {
  'a lost connection': 'lost',
  'an answer cut off': 'cut',
  'a page of a proxy': { status: 200, type: 'text/html', body: '<html><body>Welcome</body></html>' },
  'a failure of a proxy': { status: 502, type: 'text/html', body: '<html>Bad gateway</html>' },
  'an empty answer': json(''),
  null: json('null'),
  'a number': json('7'),
  'a list': json('[null]'),
  'an empty object': json('{}'),
  'rows of null': json('{"items":[null],"next":null}'),
  'rows without members': json('{"items":[{}],"next":null}'),
  'items that are none': json('{"items":7,"next":null}'),
  'a problem without members': { status: 500, type: 'application/problem+json', body: '{}' },
  'a refusal that is null': { status: 403, type: 'application/problem+json', body: 'null' },
  'values of null': () => null,
  'values of another type': (leaf) => (typeof leaf === 'string' ? { text: leaf } : 'text'),
  'times and numbers that are none': (leaf) => (typeof leaf === 'number' ? -1 : typeof leaf === 'string' ? '' : leaf),
};

export interface GarblingFront {
  readonly url: string;
  readonly caFile: string;
  /** How many requests came since the last `answer`. */
  readonly asked: () => number;
  /** From now on; `pass`: so many GETs are passed on before. */
  answer(how: Garbled, pass: number): void;
  close(): Promise<void>;
}

export const openGarblingFront = async (url: string, ca: Buffer): Promise<GarblingFront> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-garbling-'));
  const authority = makeAuthority(folder, 'authority');
  const { certificate, key } = authority.issue({
    commonName: 'localhost',
    names: ['DNS:localhost', 'IP:127.0.0.1'],
    usage: 'serverAuth',
  });
  const caFile = authority.certificate;
  let how: Garbled = 'lost';
  let left = 0;
  let asked = 0;
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
    asked += 1;
    const isRead = request.method === 'GET';
    const passes = isRead && (left > 0 || typeof how === 'function');
    const garble = left > 0 ? undefined : how;
    left -= 1;
    request.resume();
    const say = ({ status, type, body }: Answer): void => {
      response.writeHead(status, { 'content-type': type, etag: '"1"' });
      response.end(body);
    };
    if (passes) {
      const { host: _, ...headers } = request.headers;
      const inner = forward(new URL(request.url ?? '/', url), { method: 'GET', headers, ca }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString();
          const { 'content-type': type = '' } = answer.headers;
          const isJson = typeof garble === 'function' && type.includes('json');
          const body = isJson ? JSON.stringify(withValues(JSON.parse(text), garble)) : text;
          say({ status: answer.statusCode ?? 200, type, body });
        });
      });
      inner.on('error', () => request.socket.destroy());
      inner.end();
      return;
    }
    if (how === 'lost') request.socket.destroy();
    else if (how === 'cut') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
      response.write('{"items":', () => request.socket.destroy());
    } else say(typeof how === 'function' ? json('{}') : how);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    ...{ url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, caFile },
    asked: () => asked,
    answer: (next, pass) => {
      [how, left, asked] = [next, pass, 0];
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<unknown>((done) => server.close(done));
      rmSync(folder, { recursive: true });
    },
  };
};
