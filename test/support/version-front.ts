// A front that makes one of two versions out of one: what passes through it says more than the
// other side knows, in every object of JSON and in every head of the TDE API. In answers the
// service is the later one; in requests it is who calls.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request as forward } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { envelopeType, packEnvelope, splitEnvelope } from '../../server/contract/tde.ts';
import { makeAuthority } from './authority.ts';

export type Later = 'service' | 'caller' | 'neither';
export interface VersionFront {
  readonly url: string;
  readonly caFile: string;
  /** From the next request on. */
  later(who: Later): void;
  /** Where requests go to. */
  leadTo(port: number): void;
  close(): Promise<void>;
}

const saysMore = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(saysMore);
  if (typeof value !== 'object' || value === null) return value;
  return {
    ...Object.fromEntries(Object.entries(value).map(([name, each]) => [name, saysMore(each)])),
    ofLaterVersion: { known: 'to it' },
  };
};
const read = (text: Uint8Array): object => saysMore(JSON.parse(Buffer.from(text).toString('utf8'))) as object;

const changed = (body: Buffer, type = ''): Buffer => {
  if (body.length === 0) return body;
  if (type.startsWith(envelopeType)) {
    const { json, raw } = splitEnvelope(body);
    return packEnvelope(read(json), raw);
  }
  return /^application\/(?:[a-z]+\+)?json/.test(type) ? Buffer.from(JSON.stringify(read(body))) : body;
};

/** In `folder`: its certificate. */
export const openVersionFront = async (folder: string): Promise<VersionFront> => {
  const authority = makeAuthority(folder, 'authority of the front');
  const { certificate, key } = authority.issue({
    commonName: 'localhost',
    names: ['DNS:localhost', 'IP:127.0.0.1'],
    usage: 'serverAuth',
  });
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  let [who, port]: [Later, number] = ['neither', 0];
  const server = createServer(
    { cert: readFileSync(certificate), key: readFileSync(key) },
    async (incoming, outgoing) => {
      const { method, url: path, headers } = incoming;
      const later = who;
      const came = await buffer(incoming);
      const body = later === 'caller' ? changed(came, headers['content-type']) : came;
      const length = body.length === came.length ? {} : { 'content-length': body.length };
      const sent = forward(
        { host: '127.0.0.1', port, agent, method, path, headers: { ...headers, ...length } },
        async (answer) => {
          const whole = await buffer(answer);
          const told = later === 'service' ? changed(whole, answer.headers['content-type']) : whole;
          const size = told.length === whole.length ? {} : { 'content-length': told.length };
          outgoing.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...size }).end(told);
        },
      );
      sent.on('error', () => outgoing.destroy());
      sent.end(body);
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    caFile: authority.certificate,
    later: (next) => {
      who = next;
    },
    leadTo: (next) => {
      port = next;
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
};
