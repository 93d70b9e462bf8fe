// A real OpenID provider (oidc-provider) over TLS with an authority of the test. Whoever names themselves at its sign-in page is that person.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import { makeAuthority } from './authority.ts';

export const clientSecret = 'a secret of the test, long enough';

export interface OpenIdProvider {
  /** `https://localhost:PORT`. */
  readonly issuer: string;
  /** File of the authority that vouches for it, and its text. */
  readonly caFile: string;
  readonly caPem: string;
  /** Its certificate, PEM. */
  readonly certificate: string;
  close(): Promise<void>;
}

/** `groups`: what it says of people, by name; of others it says that they have none. */
export const startOpenIdProvider = async (
  folder: string,
  callback: string,
  groups: ReadonlyMap<string, readonly string[]>,
): Promise<OpenIdProvider> => {
  const authority = makeAuthority(folder, 'provider authority');
  const { certificate, key } = authority.issue({
    commonName: 'localhost',
    names: ['DNS:localhost'],
    usage: 'serverAuth',
  });
  const cert = readFileSync(certificate, 'utf8');
  let handle: ReturnType<Provider['callback']> | undefined;
  const server = createServer({ cert, key: readFileSync(key) }, (incoming, outgoing) => handle?.(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `https://localhost:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'dke', client_secret: clientSecret, redirect_uris: [callback] }],
    claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'], email: ['email'] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        name: `Person ${id}`,
        preferred_username: id,
        email: `${id}@example.com`,
        groups: groups.get(id) ?? [],
      }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['of the test'] },
    features: { devInteractions: { enabled: true } },
  });
  handle = provider.callback();
  return {
    issuer,
    caFile: authority.certificate,
    caPem: authority.pem,
    certificate: cert,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
