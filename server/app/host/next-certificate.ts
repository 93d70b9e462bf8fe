// A new self-signed certificate in two steps, so that clients that pin it are never without one
// that they accept: it is created next to the present one, clients get both, and then it takes the
// other's place. SIGHUP makes the service serve it.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { core } from '../../../addon/core.ts';
import { putInPlace, replaceFile } from '../../base/durable-files.ts';
import { StartError } from '../../base/start-error.ts';
import type { Config } from '../config/config.ts';
import { ownCertificateDays } from '../tls/own-certificate.ts';
import { summaryOf } from '../tls/served-certificates.ts';

export interface RenewedCertificate {
  readonly certificate: string;
  readonly names: string;
  readonly expiresAt: string;
  readonly fingerprint: string;
}

const filesOf = ({ dataDirectory, tls }: Pick<Config, 'dataDirectory' | 'tls'>) => {
  if (tls.main !== undefined)
    throw new StartError(
      'config',
      `the service serves ${tls.main.certificate}, which it did not create: get a new one from its issuer, and send SIGHUP`,
    );
  const [certificate, key] = [join(dataDirectory, 'tls.crt'), join(dataDirectory, 'tls.key')];
  if (!existsSync(certificate))
    throw new StartError('config', `there is no certificate ${certificate}: the first start of the service creates it`);
  return { certificate, key, next: `${certificate}.next`, nextKey: `${key}.next` };
};

const describe = (file: string): RenewedCertificate => ({
  certificate: file,
  ...summaryOf(readFileSync(file, 'utf8')),
});

/** Creates the next certificate next to the present one, which stays. Throws StartError. */
export const createNextCertificate = (config: Config): RenewedCertificate => {
  const { next, nextKey } = filesOf(config);
  if (existsSync(next))
    throw new StartError(
      'config',
      `${next} is there already: give it to your clients, then run dke server renew-certificate --activate; to create another one, remove it first`,
    );
  // Removes the key of an earlier attempt that was cut off.
  rmSync(nextKey, { force: true });
  const names = [...config.server.publicNames];
  const pem = core.createSelfSignedCertificate({ keyPath: nextKey, names, days: ownCertificateDays });
  replaceFile(next, pem, 0o644);
  return describe(next);
};

/**
 * Puts the next certificate in the place of the present one. Repeated after a crash, it completes
 * what is left. Throws StartError.
 */
export const activateNextCertificate = (config: Config): RenewedCertificate => {
  const { certificate, key, next, nextKey } = filesOf(config);
  if (!existsSync(next))
    throw new StartError('config', `there is no ${next}: create it with dke server renew-certificate`);
  if (existsSync(nextKey)) putInPlace(nextKey, key);
  putInPlace(next, certificate);
  return describe(certificate);
};
