// TLS: the public name speaks TLS 1.2 or 1.3 with a suite that the cloud key service takes.

import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { ok } from '../../../base/checks.ts';
import { type EndpointCheck, foretold, type Handshake } from '../context.ts';
import { hostOf, portOf } from '../probe.ts';

const timeoutMs = 3_000;
/** What the proxy protocol's specification names, in OpenSSL's words. */
const suites = new Set([
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
]);

const shake = (host: string, port: number, trust: readonly string[]): Promise<Handshake> =>
  new Promise((resolve, reject) => {
    const socket = connect(
      {
        host,
        port,
        rejectUnauthorized: false,
        ca: [...trust],
        ...(isIP(host) === 0 ? { servername: host } : {}),
      },
      () => {
        const certificate = socket.getPeerX509Certificate();
        if (certificate === undefined) reject(new Error('the server sent no certificate'));
        else {
          let top: X509Certificate = certificate;
          for (let next = top.issuerCertificate; next !== undefined && next.raw.compare(top.raw) !== 0; ) {
            top = next;
            next = top.issuerCertificate;
          }
          // A wrong name is a finding of its own.
          const fault = String(socket.authorizationError ?? '');
          resolve({
            protocol: socket.getProtocol() ?? 'unknown',
            cipher: socket.getCipher().name,
            certificate,
            fault: socket.authorized || fault.startsWith('ERR_TLS_CERT_ALTNAME') ? null : fault,
            top,
          });
        }
        socket.destroy();
      },
    );
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no handshake in ${timeoutMs} ms`)));
    socket.once('error', reject);
  });

/** `trust`: PEM certificates that are trusted. */
export const tlsHandshake = (trust: readonly string[]): EndpointCheck => ({
  id: 'tls-handshake',
  layer: 'tls',
  title: 'the public name offers TLS as the cloud requires it',
  needs: ['port-open'],
  run: async (context) => {
    const fix = 'enable TLS 1.2 or 1.3 with AES-256-GCM or ChaCha20-Poly1305';
    try {
      context.handshake = await shake(hostOf(context.publicUrl), portOf(context.publicUrl), trust);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return foretold('XksProxyUriUnreachableException', `no handshake (${code ?? message})`, fix);
    }
    const { protocol, cipher } = context.handshake;
    if (!['TLSv1.2', 'TLSv1.3'].includes(protocol) || !suites.has(cipher))
      return foretold('XksProxyUriUnreachableException', `${protocol} with ${cipher}`, fix);
    return ok(`${protocol}, ${cipher}`);
  },
});
