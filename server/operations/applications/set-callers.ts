// Sets where the credentials of a TDE application may be used from: networks and client
// certificates. Counts from the next request on, also on open connections.

import { X509Certificate } from 'node:crypto';
import { isNetwork, mostCallers } from '../../base/networks.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { findApplication } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ApplicationOperations } from './applications-operations.ts';

const block = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** Throws 'validation'. `now`: an expired certificate would shut its host out. */
const readCertificate = (pem: string, which: string, now: number): X509Certificate => {
  const [first, second] = pem.match(block) ?? [];
  if (first === undefined || second !== undefined)
    throw new ServiceError('validation', `${which} is not exactly one certificate in PEM`, {
      hint: "send the client's own certificate, without its chain",
    });
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(first);
  } catch (error) {
    throw new ServiceError('validation', `${which} cannot be read`, { cause: error });
  }
  if (Date.parse(certificate.validTo) <= now)
    throw new ServiceError('validation', `${which} expired on ${certificate.validTo}`);
  return certificate;
};

export const setCallers =
  ({
    store,
    directory,
    identity,
    clock,
  }: Pick<Ports, 'store' | 'directory' | 'identity' | 'clock'>): ApplicationOperations['setCallers'] =>
  async (actor, id, wanted) => {
    const networks = [...new Set(wanted.networks)];
    const strange = networks.find((network) => !isNetwork(network));
    if (strange !== undefined)
      throw new ServiceError('validation', `${strange} is not an address or a network`, {
        hint: 'use an address such as 192.0.2.7, or a network such as 192.0.2.0/24 or 2001:db8::/48',
      });
    const certificates = new Map(
      wanted.certificates.map((pem, index) => {
        const certificate = readCertificate(pem, `certificate ${index + 1}`, clock.now());
        return [certificate.fingerprint256, certificate.toString()] as const;
      }),
    );
    if (networks.length > mostCallers || certificates.size > mostCallers)
      throw new ServiceError(
        'validation',
        `an application can have at most ${mostCallers} networks and ${mostCallers} client certificates`,
      );
    if (certificates.size > 0 && !identity.asksClientCertificates)
      throw new ServiceError('conflict', 'this service does not request client certificates', {
        hint: 'set tls.client_certificates = true in dke.toml and restart the service',
      });
    const callers = { networks, certificates: [...certificates.values()] };
    const application = await store.write(async (tx): Promise<TdeApplication> => {
      const before = await findApplication(tx, actor.tenantId, id);
      const after: TdeApplication = { ...before, callers };
      await tx.applications.update(after);
      await recordEvent(tx, 'application.callers-changed', actor, about('application', after), {
        name: after.name,
        networks,
        certificates: [...certificates.keys()],
      });
      return after;
    });
    await directory.renew({ applications: [id] });
    return application;
  };
