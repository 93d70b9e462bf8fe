// TLS: what the listener sends leads to an authority that the cloud key service trusts.

import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

const oneLine = (name: string): string => name.split('\n').join(', ');
/** Faults that a certificate has on its own; other checks name them. */
const ownFaults = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);

export const tlsChain: EndpointCheck = {
  id: 'tls-chain',
  layer: 'tls',
  title: 'the chain is complete and trusted',
  fault: 'the certificate chain is incomplete or not trusted',
  needs: ['tls-handshake'],
  run: ({ handshake }) => {
    if (handshake === undefined) throw new Error('there was no handshake');
    const { certificate, fault, top } = handshake;
    if (fault === null || ownFaults.has(fault)) return ok(`issued by ${oneLine(certificate.issuer)}`);
    // One that may sign no others, as the service makes for itself, is not counted as its own
    // issuer by OpenSSL.
    const selfSigned = top.subject === top.issuer || top.checkIssued(top);
    if (selfSigned || top.ca)
      return foretold(
        'certificate-chain',
        selfSigned && top === certificate
          ? `self-signed (${fault})`
          : `its authority ${oneLine(selfSigned ? top.subject : top.issuer)} is not trusted (${fault})`,
        'use a certificate of a public authority, or name a trusted one in diagnostics.trusted_authorities',
      );
    return foretold(
      'certificate-chain',
      `incomplete: the certificate of ${oneLine(certificate.issuer)} was not sent (${fault})`,
      'append the intermediate certificates to the certificate file, in order',
    );
  },
};
