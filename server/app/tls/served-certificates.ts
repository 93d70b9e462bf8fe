// The certificates that the listener serves, from their PEM text: whether they are whole, their
// names and their end.

import { createPrivateKey, randomBytes, sign, verify, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { ServedCertificate } from '../../ports/meter.ts';

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
 * What is wrong with a chain that TLS would serve all the same and clients refuse, or worse,
 * believe: that it was changed after it was signed; undefined when nothing is. Only the signatures
 * of issuers in the chain can be checked, and those of `selfSigned` certificates, which are their
 * own issuers whatever a changed byte says. Throws the error of X509Certificate for bytes that are
 * not a certificate.
 */
export const damageOf = (pem: string, selfSigned: boolean): string | undefined => {
  const chain = chainOf(pem);
  if (chain.length === 0) return 'it contains no certificate';
  for (const certificate of chain) {
    if (Number.isNaN(Date.parse(certificate.validFrom)) || Number.isNaN(Date.parse(certificate.validTo)))
      return 'its dates cannot be read';
    const issuers = selfSigned ? [certificate] : chain.filter(({ subject }) => subject === certificate.issuer);
    if (issuers.length > 0 && !issuers.some((issuer) => certificate.verify(issuer.publicKey)))
      return 'its signature is not valid: it was changed after it was signed';
  }
  return undefined;
};

/**
 * Whether a private key, PEM, makes signatures that the certificate's public key takes. TLS
 * compares public halves alone, so that a key of which the private half was changed would be
 * served, and every handshake would fail. Throws the error of createPrivateKey for bytes that are
 * not a key.
 */
export const fits = (key: string, pem: string): boolean => {
  const [own] = chainOf(pem);
  if (own === undefined) return false;
  const signer = createPrivateKey(key);
  const digest = ['ed25519', 'ed448'].includes(signer.asymmetricKeyType ?? '') ? null : 'sha256';
  const challenge = randomBytes(32);
  return own.checkPrivateKey(signer) && verify(digest, challenge, own.publicKey, sign(digest, challenge, signer));
};

/**
 * Whether the names and the signature say that it is self-issued: checkIssued says no where the
 * extensions do not allow the key to sign certificates.
 */
const isSelfIssued = (certificate: X509Certificate): boolean =>
  certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey);

/**
 * The certificate (PEM) that clients have to trust to reach this host: the last one of the chain.
 * Null when that has another issuer, which is then known elsewhere, or when the chain is for other
 * names: something else answers for the host, such as a balancer with its own certificate.
 */
export const authorityOf = (pem: string, host: string): string | null => {
  const chain = chainOf(pem);
  const [own, last] = [chain[0], chain.at(-1)];
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const isForHost = isIP(address) === 0 ? own?.checkHost(address) : own?.checkIP(address);
  return isForHost !== undefined && last !== undefined && isSelfIssued(last) ? last.toString() : null;
};

/** Whether each certificate of a chain is followed by its issuer; what is wrong otherwise. */
export const orderFault = (pem: string): string | undefined => {
  const chain = chainOf(pem);
  const at = chain.findIndex((certificate, index) => {
    const next = chain[index + 1];
    return next !== undefined && !certificate.checkIssued(next);
  });
  return at < 0
    ? undefined
    : `the chain is in the wrong order: certificate ${at + 2} is not the issuer of certificate ${at + 1} (the server's own comes first, then its issuer, and so on)`;
};

/** Whether the private key is that of a certificate further down the chain. */
export const fitsAnother = (key: string, pem: string): boolean => {
  const signer = createPrivateKey(key);
  return chainOf(pem)
    .slice(1)
    .some((certificate) => certificate.checkPrivateKey(signer));
};

/** What a log says of a chain. */
export const summaryOf = (pem: string) => {
  const { names, endsAt, fingerprint } = readServedCertificate(pem);
  return { names: names.join(', '), expiresAt: new Date(endsAt).toISOString(), fingerprint };
};

/** Why a chain should not be served at this time; undefined when nothing is wrong. */
export const dateFault = (pem: string, now: number): string | undefined => {
  const { beginsAt, endsAt } = readServedCertificate(pem);
  if (endsAt <= now) return `it expired on ${new Date(endsAt).toISOString()}`;
  return beginsAt > now ? `it is not valid before ${new Date(beginsAt).toISOString()}` : undefined;
};

export interface Replacement {
  readonly present: string;
  readonly next: string;
  /** Names that clients use. */
  readonly names: readonly string[];
  /** Authorities whose certificate need not be in a chain, PEM. */
  readonly authorities: readonly string[];
  readonly now: number;
}

/**
 * Why a chain should not replace the one that is served and works; undefined when nothing is wrong.
 */
export const replacementFault = ({ present, next, names, authorities, now }: Replacement): string | undefined => {
  if (present === next) return undefined;
  const fault = dateFault(next, now) ?? orderFault(next);
  if (fault !== undefined) return fault;
  const [before, after] = [chainOf(present), chainOf(next)];
  const [oldOwn, newOwn] = [before[0], after[0]];
  const [oldTop, newTop] = [before.at(-1), after.at(-1)];
  if (oldOwn === undefined || oldTop === undefined || newOwn === undefined || newTop === undefined) return undefined;
  const has = (certificate: X509Certificate, name: string): boolean =>
    (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
  const lost = names.filter((name) => has(oldOwn, name) && !has(newOwn, name));
  if (lost.length > 0) return `it is not for ${lost.join(', ')}, but the current one is`;
  const kept = namesOf(newOwn);
  if (!namesOf(oldOwn).some((name) => kept.includes(name) || has(newOwn, name)))
    return `it is for ${kept.join(', ') || 'no name'}, but the current one is for ${namesOf(oldOwn).join(', ')}`;
  return newTop.issuer === oldTop.issuer ? undefined : missingIssuer(newTop, authorities);
};

/** An authority that cannot be read has issued nothing that could be checked. */
const isIssuedBy = (certificate: X509Certificate, authority: string): boolean => {
  try {
    return certificate.checkIssued(new X509Certificate(authority));
  } catch {
    return false;
  }
};

/** `authorities`: PEM, of those that need not be in a chain. */
const missingIssuer = (top: X509Certificate, authorities: readonly string[]): string | undefined =>
  isSelfIssued(top) || authorities.some((pem) => isIssuedBy(top, pem))
    ? undefined
    : `its chain is not complete: the certificate of ${top.issuer.replaceAll('\n', ', ')} is missing`;

/** Why clients that know only these authorities refuse a chain; undefined when nothing is wrong. */
export const chainFault = (pem: string, authorities: readonly string[]): string | undefined => {
  const top = chainOf(pem).at(-1);
  return orderFault(pem) ?? (top === undefined ? undefined : missingIssuer(top, authorities));
};

/**
 * Why clients that trust only the issuer of the present chain refuse the next one; undefined if the
 * same issuer is at the top of both. A self-signed certificate is its own issuer.
 */
export const distrustFault = (present: string, next: string): string | undefined => {
  const [oldTop, newTop] = [chainOf(present).at(-1), chainOf(next).at(-1)];
  if (oldTop === undefined || newTop === undefined || newTop.raw.equals(oldTop.raw)) return undefined;
  if (newTop.issuer === oldTop.issuer && !isSelfIssued(newTop) && !isSelfIssued(oldTop)) return undefined;
  // One of the two contains the issuer of the other.
  const isBelow = (one: X509Certificate, other: X509Certificate): boolean =>
    one.issuer === other.subject && one.verify(other.publicKey) && one.issuer !== one.subject;
  if (isBelow(newTop, oldTop) || isBelow(oldTop, newTop)) return undefined;
  const named = ({ issuer }: X509Certificate): string => issuer.replaceAll('\n', ', ');
  return `it was issued by ${named(newTop)}, and the one before by ${named(oldTop)}: clients that trust only the issuer before (ca_file in pkcs11.toml, --ca-file of dke) refuse it`;
};

/** `pem`: a chain, the server's own certificate first. */
export const readServedCertificate = (pem: string): ServedCertificate => {
  const chain = chainOf(pem);
  const [own] = chain;
  return {
    fingerprint: own?.fingerprint256 ?? '',
    names: own === undefined ? [] : namesOf(own),
    beginsAt: own === undefined ? 0 : Date.parse(own.validFrom),
    endsAt: Math.min(...chain.map(({ validTo }) => Date.parse(validTo))),
  };
};
