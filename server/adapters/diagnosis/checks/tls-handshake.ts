// TLS: the public name speaks TLS 1.2 or 1.3 with a suite that the cloud key service takes.

import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { cloudOffer } from '../../../base/cloud-causes.ts';
import { ok } from '../../../base/diagnostic-checks.ts';
import { lookupWithin } from '../../../base/name-lookup.ts';
import { callOutside } from '../../../base/outside.ts';
import { type EndpointCheck, foretold, type Handshake } from '../context.ts';
import { hostOf, portOf } from '../probe.ts';

const timeoutMs = 3_000;

/** Rejects with the error of the connection. */
const secure = (socket: TLSSocket): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });

const describe = (socket: TLSSocket): Handshake => {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) throw new Error('the server sent no certificate');
  let top: X509Certificate = certificate;
  for (let next = top.issuerCertificate; next !== undefined && next.raw.compare(top.raw) !== 0; ) {
    top = next;
    next = top.issuerCertificate;
  }
  // A wrong name is a finding of its own.
  const fault = String(socket.authorizationError ?? '');
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    cipher: socket.getCipher().name,
    certificate,
    fault: socket.authorized || fault.startsWith('ERR_TLS_CERT_ALTNAME') ? null : fault,
    top,
  };
};

const shake = async (host: string, port: number, trust: readonly string[]): Promise<Handshake> => {
  const socket = connect({
    host,
    port,
    rejectUnauthorized: false,
    ...cloudOffer,
    ca: [...trust],
    lookup: lookupWithin(timeoutMs),
    ...(isIP(host) === 0 ? { servername: host } : {}),
  });
  try {
    await callOutside({ place: host, totalMs: timeoutMs }, () => secure(socket));
    return describe(socket);
  } finally {
    socket.destroy();
  }
};

/** `trust`: PEM certificates that are trusted. */
export const tlsHandshake = (trust: readonly string[]): EndpointCheck => ({
  id: 'tls-handshake',
  layer: 'tls',
  title: 'the public name offers TLS as the cloud requires it',
  fault: 'the public name does not offer TLS as the cloud requires it',
  needs: ['port-open'],
  run: async (context) => {
    try {
      context.handshake = await shake(hostOf(context.publicUrl), portOf(context.publicUrl), trust);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return foretold('tls-version', `no handshake (${code ?? message})`);
    }
    const { protocol, cipher } = context.handshake;
    return ok(`${protocol}, ${cipher}`);
  },
});
