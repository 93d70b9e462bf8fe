// The certificates that the listener serves, from their PEM text: whether they are whole, their names and their end.

import { createPrivateKey, randomBytes, sign, verify, X509Certificate } from 'node:crypto';
import type { ServedCertificate } from '../ports/meter.ts';

/** The names of a certificate: those of subjectAltName, else the common name. */
const namesOf = ({ subjectAltName, subject }: X509Certificate): readonly string[] => {
  const names = (subjectAltName ?? '')
    .split(', ')
    .flatMap((part) => /^(?:DNS|IP Address):(.+)$/.exec(part)?.slice(1) ?? []);
  return names.length > 0 ? names : (/^CN=(.+)$/m.exec(subject)?.slice(1) ?? []);
};

const chainOf = (pem: string): readonly X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

/**
 * What is wrong with a chain that TLS would serve all the same and clients refuse, or worse, believe: that it was changed after it was signed;
 * undefined when nothing is. Only the signatures of issuers in the chain can be looked at, and those of `selfSigned` certificates, which are
 * their own issuers whatever a changed byte says. Throws what X509Certificate does, for what is no certificate at all.
 */
export const damageOf = (pem: string, selfSigned: boolean): string | undefined => {
  const chain = chainOf(pem);
  if (chain.length === 0) return 'it holds no certificate';
  for (const certificate of chain) {
    if (Number.isNaN(Date.parse(certificate.validFrom)) || Number.isNaN(Date.parse(certificate.validTo)))
      return 'its dates cannot be read';
    const issuers = selfSigned ? [certificate] : chain.filter(({ subject }) => subject === certificate.issuer);
    if (issuers.length > 0 && !issuers.some((issuer) => certificate.verify(issuer.publicKey)))
      return 'its signature does not hold: it was changed after it was signed';
  }
  return undefined;
};

/**
 * Whether a private key, PEM, makes signatures that the certificate's public key takes. TLS compares public halves alone, so that a key of which
 * the private half was changed would be served, and every handshake would fail. Throws what createPrivateKey does, for what is no key at all.
 */
export const fits = (key: string, pem: string): boolean => {
  const [own] = chainOf(pem);
  if (own === undefined) return false;
  const signer = createPrivateKey(key);
  const digest = ['ed25519', 'ed448'].includes(signer.asymmetricKeyType ?? '') ? null : 'sha256';
  const challenge = randomBytes(32);
  return own.checkPrivateKey(signer) && verify(digest, challenge, own.publicKey, sign(digest, challenge, signer));
};

/** `pem`: a chain, the server's own certificate first. */
export const readServedCertificate = (pem: string): ServedCertificate => {
  const chain = chainOf(pem);
  const [own] = chain;
  return {
    names: own === undefined ? [] : namesOf(own),
    beginsAt: own === undefined ? 0 : Date.parse(own.validFrom),
    endsAt: Math.min(...chain.map(({ validTo }) => Date.parse(validTo))),
  };
};
