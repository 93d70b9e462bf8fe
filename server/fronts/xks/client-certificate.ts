// Mutual TLS of one endpoint. The listener has verified the caller's certificate against the
// authorities of all endpoints (RFC 5280, by OpenSSL); what is left to see is that the chain ends
// at an authority of this endpoint, and whose certificate it is.

import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { EndpointSettings } from '../../domain/endpoint.ts';

type Wanted = NonNullable<EndpointSettings['clientCertificate']>;

const longestChain = 10;
const blocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The common names of a subject, which Node gives as lines of `name=value`. */
const commonNames = (certificate: X509Certificate): readonly string[] =>
  certificate.subject.split('\n').flatMap((line) => (line.startsWith('CN=') ? [line.slice(3)] : []));

const oneLine = (name: string): string => name.split('\n').join(', ');

const issued = (issuer: X509Certificate, certificate: X509Certificate): boolean =>
  issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);

const endOf = (certificate: X509Certificate): number => Date.parse(certificate.validTo);

/**
 * When the first certificate of a chain expires that leads from the certificate to one of the
 * authorities, over what the caller sent next to it; undefined: none does. Some releases of Node do
 * not show that (nodejs/node#65579): there the authorities must be the ones that issue the
 * certificates.
 */
const leadsUntil = (authorities: readonly X509Certificate[], certificate: X509Certificate): number | undefined => {
  let end = Number.POSITIVE_INFINITY;
  let current: X509Certificate | undefined = certificate;
  for (let length = 0; current !== undefined && length < longestChain; length += 1) {
    const subject: X509Certificate = current;
    end = Math.min(end, endOf(subject));
    const above = authorities.filter((authority) => issued(authority, subject)).map(endOf);
    if (above.length > 0) return Math.min(end, Math.max(...above));
    const next: X509Certificate | undefined = subject.issuerCertificate;
    current =
      next !== undefined && next.fingerprint256 !== subject.fingerprint256 && issued(next, subject) ? next : undefined;
  }
  return undefined;
};

/** Why the caller's certificate does not do, for the log; when it does, until when. */
const judge = (socket: TLSSocket, wanted: Wanted): string | number => {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return 'no client certificate was shown';
  if (!socket.authorized) return `the client certificate does not verify: ${String(socket.authorizationError)}`;
  const authorities = (wanted.authorities.match(blocks) ?? []).map((block) => new X509Certificate(block));
  const end = leadsUntil(authorities, certificate);
  if (end === undefined)
    return `the client certificate is not of this endpoint's authorities; its issuer is ${oneLine(certificate.issuer)}`;
  const names = commonNames(certificate);
  if (names.length !== 1 || names[0] !== wanted.commonName)
    return `the client certificate is for ${names.join(', ') || 'no name'}`;
  return end;
};

/**
 * Remembers its answer for as long as the connection and the endpoint's settings last: but a
 * certificate that expires meanwhile ends with its time, not with the connection.
 */
export const createClientCertificateCheck = (
  now: () => number,
): ((socket: TLSSocket, wanted: Wanted) => string | undefined) => {
  const answers = new WeakMap<TLSSocket, WeakMap<Wanted, string | number>>();
  return (socket, wanted) => {
    const own = answers.get(socket) ?? new WeakMap<Wanted, string | number>();
    const known = own.get(wanted) ?? judge(socket, wanted);
    answers.set(socket, own.set(wanted, known));
    if (typeof known === 'string') return known;
    return now() > known ? 'the client certificate has expired' : undefined;
  };
};
