// A certificate authority for tests, created with the openssl command: valid and faulty
// certificates as other issuers create them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface IssuedCertificate {
  /** PEM files; `certificate` contains the chain without the root. */
  readonly certificate: string;
  readonly key: string;
}

export interface CertificateRequest {
  readonly commonName: string;
  /** subjectAltName, for example `DNS:keys.example`; none when absent. */
  readonly names?: readonly string[];
  readonly usage?: 'serverAuth' | 'clientAuth';
  /** YYYYMMDDHHMMSSZ; a year around now when absent. */
  readonly notBefore?: string;
  readonly notAfter?: string;
}

export interface Authority {
  /** PEM file. */
  readonly certificate: string;
  readonly pem: string;
  issue(request: CertificateRequest): IssuedCertificate;
  /** An authority below this one. */
  below(name: string): Authority;
}

const openssl = (...parameters: readonly string[]): void => {
  execFileSync('openssl', parameters, { stdio: ['ignore', 'ignore', 'pipe'] });
};

/** Creates a new folder for it in `folder`. */
export const makeAuthority = (folder: string, name: string, above?: { folder: string; chain: string }): Authority => {
  const own = join(folder, name.replaceAll(/\W/g, '-'));
  mkdirSync(own, { recursive: true });
  const path = (file: string): string => join(own, file);
  let serial = 0;
  writeFileSync(path('index.txt'), '');
  writeFileSync(path('index.txt.attr'), 'unique_subject = no\n');
  writeFileSync(
    path('ca.cnf'),
    `[ca]\ndefault_ca = own\n[own]\ndatabase = ${path('index.txt')}\nrand_serial = yes\nnew_certs_dir = ${own}\ndefault_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n[req]\ndistinguished_name = name\nprompt = no\n[name]\n`,
  );
  const key = (file: string): void =>
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', file);
  const sign = (
    signer: string,
    request: string,
    certificate: string,
    extensions: string,
    more: readonly string[] = [],
    from = '20260101000000Z',
    to = '20991231000000Z',
  ): void =>
    openssl(
      'ca',
      '-batch',
      '-notext',
      ...more,
      ...['-config', join(signer, 'ca.cnf'), '-keyfile', join(signer, 'ca.key')],
      ...(more.includes('-selfsign') ? [] : ['-cert', join(signer, 'ca.pem')]),
      ...['-in', request, '-out', certificate, '-extfile', extensions, '-startdate', from, '-enddate', to],
    );
  const ask = (keyFile: string, commonName: string, request: string): void =>
    openssl('req', '-new', '-config', path('ca.cnf'), '-key', keyFile, '-subj', `/CN=${commonName}`, '-out', request);

  key(path('ca.key'));
  ask(path('ca.key'), name, path('ca.csr'));
  writeFileSync(
    path('ca.ext'),
    'basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign\nsubjectKeyIdentifier = hash\n',
  );
  if (above === undefined) sign(own, path('ca.csr'), path('ca.pem'), path('ca.ext'), ['-selfsign']);
  else sign(above.folder, path('ca.csr'), path('ca.pem'), path('ca.ext'));
  const pem = readFileSync(path('ca.pem'), 'utf8');
  const chain = above === undefined ? '' : pem + above.chain;
  return {
    certificate: path('ca.pem'),
    pem,
    issue: ({ commonName, names = [], usage = 'clientAuth', notBefore, notAfter }) => {
      serial += 1;
      const file = (end: string): string => path(`${serial}.${end}`);
      key(file('key'));
      ask(file('key'), commonName, file('csr'));
      const alternative = names.length === 0 ? '' : `subjectAltName = ${names.join(',')}\n`;
      writeFileSync(file('ext'), `basicConstraints = CA:FALSE\nextendedKeyUsage = ${usage}\n${alternative}`);
      sign(own, file('csr'), file('leaf'), file('ext'), [], notBefore, notAfter);
      writeFileSync(file('crt'), readFileSync(file('leaf'), 'utf8') + chain);
      return { certificate: file('crt'), key: file('key') };
    },
    below: (child) => makeAuthority(folder, child, { folder: own, chain }),
  };
};
