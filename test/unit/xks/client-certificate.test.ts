// The caller's certificate at a key store endpoint, on a connection that is kept: what was accepted
// once is accepted until it expires.
import { readFileSync } from 'node:fs';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createClientCertificateCheck } from '../../../server/fronts/xks/client-certificate.ts';
import { makeAuthority } from '../../support/authority.ts';
import { folderOfTest } from '../../support/folders.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** The server's side of a connection on which this certificate was shown. */
const shown = async (
  authority: ReturnType<typeof makeAuthority>,
  client: { readonly certificate: string; readonly key: string },
): Promise<TLSSocket> => {
  const own = authority.issue({ commonName: 'server', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
  const server = createServer({
    cert: readFileSync(own.certificate),
    key: readFileSync(own.key),
    ca: authority.pem,
    requestCert: true,
    rejectUnauthorized: false,
  });
  const accepted = new Promise<TLSSocket>((resolve) => server.once('secureConnection', resolve));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const caller = connect({
    host: '127.0.0.1',
    port,
    ca: authority.pem,
    cert: readFileSync(client.certificate),
    key: readFileSync(client.key),
  });
  const socket = await accepted;
  ends.push(() => {
    caller.destroy();
    socket.destroy();
    server.close();
  });
  return socket;
};

test('a certificate, or one above it, that expires on a kept connection is refused from then on', async () => {
  const authority = makeAuthority(folderOfTest(), 'clients');
  const wanted = { authorities: authority.pem, commonName: 'cloud' };
  const notAfter = '20900101000000Z';
  const socket = await shown(authority, authority.issue({ commonName: 'cloud', notAfter }));
  let now = Date.now();
  const check = createClientCertificateCheck(() => now);
  expect(check(socket, wanted)).toBeUndefined();
  now = Date.parse('2090-01-01T00:00:00Z');
  expect(check(socket, wanted)).toBeUndefined();
  now += 1;
  expect(check(socket, wanted)).toBe('the client certificate has expired');
  const below = authority.below('intermediate');
  const chained = await shown(authority, below.issue({ commonName: 'cloud', notAfter: '21500101000000Z' }));
  const between = { authorities: below.pem, commonName: 'cloud' };
  now = Date.now();
  expect(check(chained, between)).toBeUndefined();
  now = Date.parse('2100-01-01T00:00:00Z');
  expect(check(chained, between)).toBe('the client certificate has expired');
});

test('only the very name is taken: no pattern, no other case, no beginning and no second name', async () => {
  const authority = makeAuthority(folderOfTest(), 'names');
  const wanted = { authorities: authority.pem, commonName: 'cloud' };
  const check = createClientCertificateCheck(() => Date.parse('2030-01-01T00:00:00Z'));
  const others = [
    '*',
    'clou*',
    'CLOUD',
    'ｃｌｏｕｄ',
    'cloud.',
    'cloud\\\\00.evil',
    'evil\nCN=cloud',
    'cloud\nx',
    'cloud/CN=evil',
  ];
  for (const commonName of others) {
    const socket = await shown(authority, authority.issue({ commonName }));
    expect([commonName, check(socket, wanted)]).toEqual([commonName, expect.stringMatching(/is for /)]);
  }
  for (const commonName of ['*', 'clou*', 'CLOUD']) {
    const socket = await shown(authority, authority.issue({ commonName: 'cloud' }));
    expect(check(socket, { ...wanted, commonName })).toMatch(/is for cloud/);
  }
});
