// DNS: the public name has addresses.

import { isIP } from 'node:net';
import { ok } from '../../../base/diagnostic-checks.ts';
import { dnsTimeout, resolveWithin } from '../../../base/name-lookup.ts';
import { type EndpointCheck, foretold } from '../context.ts';
import { hostOf } from '../probe.ts';

export const dnsResolves: EndpointCheck = {
  id: 'dns-resolves',
  layer: 'dns',
  title: 'the public name resolves',
  fault: 'the public name does not resolve',
  needs: [],
  run: async (context) => {
    const name = hostOf(context.publicUrl);
    if (isIP(name) !== 0) {
      context.addresses = [name];
      return ok(`${name} is an address`);
    }
    try {
      const found = await resolveWithin(5_000, name);
      context.addresses = [...new Set(found.map(({ address }) => address))];
      return ok(`${name}: ${context.addresses.join(', ')}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === dnsTimeout)
        return foretold(
          'no-name',
          `DNS does not answer for ${name}`,
          'check the DNS servers of this host (/etc/resolv.conf), and whether other hosts resolve the name',
        );
      return foretold(
        'no-name',
        `${name} does not resolve (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`,
        'create an A or AAAA record for it, or correct server.public_url',
      );
    }
  },
};
