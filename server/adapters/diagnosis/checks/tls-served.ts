// TLS: the public name shows the certificate that this node has.

import { X509Certificate } from 'node:crypto';
import { ok, warning } from '../../../base/diagnostic-checks.ts';
import type { EndpointCheck } from '../context.ts';

export const tlsServed: EndpointCheck = {
  id: 'tls-served',
  layer: 'tls',
  title: 'the public name serves the configured certificate',
  fault: 'the public name serves another certificate',
  needs: ['tls-handshake'],
  run: ({ handshake, servedCertificate }) => {
    if (handshake === undefined) throw new Error('there was no handshake');
    const configured = new X509Certificate(servedCertificate).fingerprint256;
    const shown = handshake.certificate.fingerprint256;
    return shown === configured
      ? ok(shown.slice(0, 23))
      : warning(
          `it serves ${shown.slice(0, 23)}..., this node has ${configured.slice(0, 23)}...`,
          'correct if a proxy in front of the service terminates TLS; otherwise send SIGHUP after you renew a certificate',
        );
  },
};
