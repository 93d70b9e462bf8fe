// Whether a caller may use an application's credentials: by its address, and by the client certificate that its connection has shown. The
// listener has verified that the caller has the certificate's private key; the certificate itself is compared with those of the application,
// so that its issuer does not matter.

import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import { createNetworks, type Networks } from '../../base/networks.ts';
import type { TdeApplication } from '../../domain/tde.ts';
import type { CallerFacts } from './interface.ts';

const body = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/;
/** As X509Certificate.fingerprint256 is written. */
const fingerprintOf = (pem: string): string =>
  (
    createHash('sha256')
      .update(Buffer.from(body.exec(pem)?.[1] ?? '', 'base64'))
      .digest('hex')
      .toUpperCase()
      .match(/../g) ?? []
  ).join(':');

interface Allowed {
  readonly networks: Networks | undefined;
  readonly certificates: ReadonlySet<string> | undefined;
}
const read = ({ callers: { networks, certificates } }: TdeApplication): Allowed => ({
  networks: networks.length === 0 ? undefined : createNetworks(networks),
  certificates: certificates.length === 0 ? undefined : new Set(certificates.map(fingerprintOf)),
});
/** The directory keeps one object for each state of an application. */
const known = new WeakMap<TdeApplication, Allowed>();
const allowedOf = (application: TdeApplication): Allowed => {
  let allowed = known.get(application);
  if (allowed === undefined) {
    allowed = read(application);
    known.set(application, allowed);
  }
  return allowed;
};

/** Throws 'unauthenticated' with the reason 'network' or 'certificate'. */
export const checkCaller = (application: TdeApplication, { peer, certificate }: CallerFacts, now: number): void => {
  const { networks, certificates } = allowedOf(application);
  if (networks !== undefined && !networks.has(peer))
    throw new ServiceError(
      'unauthenticated',
      `the address ${peer ?? '(unknown)'} is not in the allowed networks of the application`,
      {
        hint: `if this host may use it: dke tde app callers ${application.name} --add-network ${peer ?? 'ADDRESS'}`,
        reason: 'network',
      },
    );
  if (certificates === undefined) return;
  const shown = certificate?.() ?? null;
  const refusal = (what: string, hint: string): ServiceError =>
    new ServiceError('unauthenticated', what, { hint, reason: 'certificate' });
  if (shown === null)
    throw refusal(
      'the application requires a client certificate, and the connection has none',
      'set client_certificate and client_key in pkcs11.toml; the service needs tls.client_certificates = true in dke.toml',
    );
  if (!certificates.has(shown.fingerprint))
    throw refusal(
      `the client certificate ${shown.fingerprint} is not one of the application's`,
      `if this host may use it: dke tde app callers ${application.name} --add-certificate FILE`,
    );
  if (now < shown.beginsAt || now >= shown.endsAt)
    throw refusal(
      'the client certificate is not valid at this time',
      `replace it: dke tde app callers ${application.name} --add-certificate FILE, then client_certificate and client_key in pkcs11.toml`,
    );
};
