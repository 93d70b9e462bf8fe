// TLS to the service: the authorities to trust, and the client certificate of pkcs11.toml. The private key is read into a buffer, handed to
// OpenSSL and wiped.
import { statSync } from 'node:fs';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { tell } from './causes.ts';
import { ConfigError, type ProviderConfig } from './config.ts';
import { readSmallFile, UnsuitableFile } from './small-file.ts';

/** More than all authorities of a system. */
const mostBytes = 4 << 20;

const reasonOf = (error: unknown): string =>
  error instanceof UnsuitableFile ? error.message : ((error as NodeJS.ErrnoException).code ?? 'unknown error');

type FileCause = 'ca-file' | 'client-certificate';

const readPem = (cause: FileCause, file: string, check?: Parameters<typeof readSmallFile>[2]): Buffer => {
  let bytes: Buffer;
  try {
    bytes = readSmallFile(file, mostBytes, check);
  } catch (error) {
    throw new ConfigError(tell(cause, { file, error: reasonOf(error) }));
  }
  if (!bytes.includes('-----BEGIN ')) throw new ConfigError(tell(cause, { file, error: 'no PEM' }));
  return bytes;
};

/** The agent may serve many users, and reads the key for one of them: a user must not use another user's key. */
const checkKey =
  (uid: number): NonNullable<Parameters<typeof readSmallFile>[2]> =>
  ({ uid: owner, mode }) => {
    if (owner !== uid) throw new UnsuitableFile(`owned by uid ${owner}, not by uid ${uid}`);
    if ((mode & 0o077) !== 0)
      throw new UnsuitableFile(`mode ${(mode & 0o777).toString(8)} lets other users read it: chmod 600`);
  };

/** Throws ConfigError. */
export const openTls = ({
  caFile,
  clientCertificate,
  uid,
}: Pick<ProviderConfig, 'caFile' | 'clientCertificate' | 'uid'>): SecureContext => {
  const ca = caFile === null ? undefined : readPem('ca-file', caFile);
  const make = (cause: FileCause, file: string, options: SecureContextOptions): SecureContext => {
    try {
      return createSecureContext({ ...options, ...(ca === undefined ? {} : { ca }) });
    } catch (error) {
      throw new ConfigError(tell(cause, { file, error: reasonOf(error) }));
    }
  };
  // First without the certificate, so that a fault is told of the file that has it.
  const trusting = make('ca-file', caFile ?? '', {});
  if (clientCertificate === null) return trusting;
  const { certificate, key } = clientCertificate;
  const cert = readPem('client-certificate', certificate);
  make('client-certificate', certificate, { cert });
  const secret = readPem('client-certificate', key, checkKey(uid));
  try {
    return make('client-certificate', key, { cert, key: secret });
  } finally {
    secret.fill(0);
  }
};

/** Changes when one of the files does. */
export const tlsFilesState = ({ caFile, clientCertificate }: ProviderConfig): string =>
  [caFile, clientCertificate?.certificate ?? null, clientCertificate?.key ?? null]
    .map((file) => {
      if (file === null) return '';
      const found = statSync(file, { bigint: true, throwIfNoEntry: false });
      return found === undefined ? 'missing' : [found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':');
    })
    .join(' ');
