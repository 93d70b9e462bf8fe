// A real OpenID provider (oidc-provider) over TLS with an authority of the test. A person who gives
// a name at its sign-in page is that person.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import { Agent, fetch } from 'undici';
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
  /**
   * A browser that is sent to `start`: signs in as `who`, agrees, and answers the address that it
   * is sent back to.
   */
  signIn(start: string, who: string): Promise<string>;
  close(): Promise<void>;
}

/** `groups`: the groups of each user, by name; all others have none. */
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
  const dispatcher = new Agent({ connect: { ca: authority.pem } });
  return {
    issuer,
    caFile: authority.certificate,
    caPem: authority.pem,
    certificate: cert,
    signIn: async (start, who) => {
      const cookies = new Map<string, string>();
      let url = start;
      let form: URLSearchParams | undefined;
      for (let step = 0; step < 20; step += 1) {
        if (url.startsWith(callback)) return url;
        const answer = await fetch(url, {
          dispatcher,
          redirect: 'manual',
          method: form === undefined ? 'GET' : 'POST',
          headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
          ...(form === undefined ? {} : { body: form }),
        });
        for (const line of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
          cookies.set(name, value);
        }
        const location = answer.headers.get('location');
        const page = await answer.text();
        if (location !== null) {
          url = new URL(location, url).href;
          form = undefined;
          continue;
        }
        const action = /action="([^"]+)"/.exec(page)?.[1];
        const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1];
        if (action === undefined || prompt === undefined) throw new Error(`no form at ${url}: ${page.slice(0, 300)}`);
        url = new URL(action, url).href;
        form = new URLSearchParams({ prompt, ...(prompt === 'login' ? { login: who, password: 'any' } : {}) });
      }
      throw new Error('the provider leads nowhere');
    },
    close: async () => {
      await dispatcher.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
