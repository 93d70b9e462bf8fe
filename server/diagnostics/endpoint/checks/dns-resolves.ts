// DNS: the public name has addresses.

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { ok } from '../../../base/checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';
import { hostOf } from '../probe.ts';

export const dnsResolves: EndpointCheck = {
  id: 'dns-resolves',
  layer: 'dns',
  title: 'the public name resolves',
  needs: [],
  run: async (context) => {
    const name = hostOf(context.publicUrl);
    if (isIP(name) !== 0) {
      context.addresses = [name];
      return ok(`${name} is an address`);
    }
    try {
      const found = await lookup(name, { all: true });
      context.addresses = [...new Set(found.map(({ address }) => address))];
      return ok(`${name}: ${context.addresses.join(', ')}`);
    } catch (error) {
      return foretold(
        'XksProxyUriUnreachableException',
        `${name} does not resolve (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`,
        'make an A or AAAA record for it, or correct server.public_url',
      );
    }
  },
};
