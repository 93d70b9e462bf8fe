// A private key of others with its certificate, as programs import one: PKCS#8, certificate and
// PKCS#12 in a folder.
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainEnvironment } from './openssl.ts';
import { run } from './tools.ts';

export interface OthersKey {
  /** PEM, not encrypted. */
  readonly key: string;
  readonly certificate: string;
  readonly pkcs12: string;
  readonly password: string;
  read(): X509Certificate;
}

const kinds = { rsa: ['rsa:2048'], ec: ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] } as const;

/**
 * Makes the files `<name>.key`, `<name>.crt` and `<name>.p12`. The certificate's subject is the
 * name.
 */
export const makeOthersKey = async (folder: string, name: string, kind: keyof typeof kinds): Promise<OthersKey> => {
  const path = (ending: string): string => join(folder, `${name}.${ending}`);
  const openssl = async (...args: string[]): Promise<void> => {
    const { code, complaints } = await run('openssl', args, { environment: plainEnvironment(folder) });
    if (code !== 0) throw new Error(complaints);
  };
  const [key, certificate, pkcs12, password] = [path('key'), path('crt'), path('p12'), 'of the file'];
  const made = ['-keyout', key, '-out', certificate, '-subj', `/CN=${name}`, '-days', '2'];
  await openssl('req', '-x509', '-newkey', ...kinds[kind], '-nodes', ...made);
  const packed = ['-out', pkcs12, '-passout', `pass:${password}`, '-name', name];
  await openssl('pkcs12', '-export', '-inkey', key, '-in', certificate, ...packed);
  return { key, certificate, pkcs12, password, read: () => new X509Certificate(readFileSync(certificate)) };
};
