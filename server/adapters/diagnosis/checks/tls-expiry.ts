// TLS: the certificate behind the public name is valid today and for a while.

import { ok, warning } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

const day = 86_400_000;
const warnDays = 30;
const failDays = 10;

export const tlsExpiry: EndpointCheck = {
  id: 'tls-expiry',
  layer: 'tls',
  title: 'the certificate is not expired',
  fault: 'the certificate is expired or not valid yet',
  needs: ['tls-handshake'],
  run: ({ handshake, now }) => {
    if (handshake === undefined) throw new Error('there was no handshake');
    const { fault } = handshake;
    const { validFrom, validTo } = handshake.certificate;
    const time = now();
    if (Date.parse(validFrom) > time)
      return foretold(
        'certificate-expired',
        `valid from ${validFrom} on`,
        'check the clock, or use another certificate',
      );
    const days = Math.floor((Date.parse(validTo) - time) / day);
    const fix = 'renew it, put it into [tls] of dke.toml, and send SIGHUP';
    if (days < 0) return foretold('certificate-expired', `expired on ${validTo}`, fix);
    if (days < failDays) return foretold('certificate-expired', `expires on ${validTo}, in ${days} days`, fix);
    if (fault === 'CERT_HAS_EXPIRED' || fault === 'CERT_NOT_YET_VALID')
      return foretold(
        'certificate-expired',
        `an authority above it is not valid now (${fault})`,
        'use a chain whose certificates are all valid',
      );
    return days < warnDays ? warning(`expires on ${validTo}, in ${days} days`, fix) : ok(`until ${validTo}`);
  },
};
