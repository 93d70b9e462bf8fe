// Names and end of the certificates that the listener serves, from their PEM text.

import { X509Certificate } from 'node:crypto';
import type { ServedCertificate } from '../ports/meter.ts';

/** The names of a certificate: those of subjectAltName, else the common name. */
const namesOf = ({ subjectAltName, subject }: X509Certificate): readonly string[] => {
  const names = (subjectAltName ?? '')
    .split(', ')
    .flatMap((part) => /^(?:DNS|IP Address):(.+)$/.exec(part)?.slice(1) ?? []);
  return names.length > 0 ? names : (/^CN=(.+)$/m.exec(subject)?.slice(1) ?? []);
};

/** `pem`: a chain, the server's own certificate first. */
export const readServedCertificate = (pem: string): ServedCertificate => {
  const chain = (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );
  const [own] = chain;
  return {
    names: own === undefined ? [] : namesOf(own),
    beginsAt: own === undefined ? 0 : Date.parse(own.validFrom),
    endsAt: Math.min(...chain.map(({ validTo }) => Date.parse(validTo))),
  };
};
