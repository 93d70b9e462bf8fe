// TLS: the certificate is for the public name.

import { isIP } from 'node:net';
import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';
import { hostOf } from '../probe.ts';

export const tlsName: EndpointCheck = {
  id: 'tls-name',
  layer: 'tls',
  title: 'the certificate is for the public name',
  fault: 'the certificate is for another name',
  needs: ['tls-handshake'],
  run: ({ handshake, publicUrl }) => {
    if (handshake === undefined) throw new Error('there was no handshake');
    const { certificate } = handshake;
    const name = hostOf(publicUrl);
    const found = isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name);
    if (found !== undefined) return ok(found);
    return foretold(
      'certificate-name',
      `it is for ${certificate.subjectAltName ?? 'no name'}, not for ${name}`,
      `use a certificate for ${name}`,
    );
  },
};
