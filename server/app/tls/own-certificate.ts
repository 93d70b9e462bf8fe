// The certificates that the listener serves: the service's own, which it makes itself, or those of
// the configuration.

import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import type { Core } from '../../../addon/core.ts';
import { putInPlace, replaceFile } from '../../base/durable-files.ts';
import type { TlsMaterial } from '../../fronts/listener/listener.ts';
import type { Log } from '../../ports/log.ts';
import type { ServedCertificate } from '../../ports/meter.ts';
import type { Config } from '../config/config.ts';
import type { Disks } from '../open/disks.ts';
import { logTaken, openTlsFiles, pairFilesOf } from './reload-certificates.ts';
import { authorityOf, distrustFault, readServedCertificate, summaryOf } from './served-certificates.ts';

/** How long a certificate that the service creates is valid. */
export const ownCertificateDays = 825;

type Pairs = TlsMaterial['pairs'];

export interface IssuerChange extends ReturnType<typeof summaryOf> {
  readonly reason: string;
}

export interface Certificates {
  /** PEM file of the first certificate. */
  readonly path: string;
  /**
   * Makes the service's own certificate where the configuration names none and there is none yet.
   */
  make(): void;
  /** What `make` has created. */
  made(): ReturnType<typeof summaryOf> | undefined;
  read(): Pairs;
  /** What may replace what is served. Throws StartError 'config' when it is worse. */
  renew(trusted: readonly string[]): Promise<Pairs>;
  /**
   * The listener serves these from now on. Answers those whose issuer is not that of the one
   * before.
   */
  taken(pairs: Pairs): readonly IssuerChange[];
  served(): readonly ServedCertificate[];
  /**
   * The certificate (PEM) that clients have to trust to reach this host; null: the served chain
   * does not contain it, or nothing is served yet.
   */
  authority(host: string): string | null;
  /** Why the next start could not serve what is in the files, or clients would refuse it. */
  faults(trusted: readonly string[]): Promise<readonly string[]>;
}

export const openCertificates = (
  { dataDirectory, server, tls }: Pick<Config, 'dataDirectory' | 'server' | 'tls'>,
  core: Pick<Core, 'createSelfSignedCertificate'>,
  log: Log,
  disks: Pick<Disks, 'ask'>,
): Certificates => {
  const { own, place, pairs: files } = pairFilesOf({ dataDirectory, server, tls });
  const { certificate: path, key: keyPath } = files[0] ?? own;
  /** Where one of the files is elsewhere, that disk decides. */
  const [elsewhere = path] = files.flatMap(({ certificate, key }) =>
    [certificate, key].filter((each) => relative(dataDirectory, each).startsWith('..')),
  );
  let present: Pairs = [];
  const presentCertificates = (): readonly string[] => present.map(({ certificate }) => certificate);
  let served: readonly ServedCertificate[] = [];
  let chain = '';
  let made: ReturnType<Certificates['made']>;
  return {
    path,
    make: () => {
      if (tls.main !== undefined || existsSync(path)) return;
      const names = [...server.publicNames];
      // A key that is already here is of a certificate that was lost. A backup of that certificate
      // needs the key again.
      if (existsSync(keyPath)) putInPlace(keyPath, `${keyPath}.former`);
      const pem = core.createSelfSignedCertificate({ keyPath, names, days: ownCertificateDays });
      replaceFile(path, pem);
      made = summaryOf(pem);
      log.info('a self-signed certificate was created', { certificatePath: path, ...made });
    },
    made: () => made,
    read: () => openTlsFiles(files, place).readPairs(),
    renew: async (trusted) => {
      const { pairs, faults } = await disks.ask(
        elsewhere,
        'renewCertificates',
        ...([files, place, presentCertificates(), trusted] as const),
      );
      if (faults.length > 0)
        log.warn('certificates with faults replace the current ones: force-certificate was found', { faults });
      return pairs;
    },
    taken: (pairs) => {
      served = pairs.map(({ certificate }) => readServedCertificate(certificate));
      chain = pairs[0]?.certificate ?? '';
      logTaken(files, pairs, log);
      const changes = pairs.flatMap(({ certificate }, index) => {
        const reason = distrustFault(present[index]?.certificate ?? certificate, certificate);
        return reason === undefined ? [] : [{ ...summaryOf(certificate), reason }];
      });
      present = pairs;
      for (const change of changes) log.warn('the certificate has another issuer than the one before', { ...change });
      return changes;
    },
    served: () => served,
    authority: (host) => authorityOf(chain, host),
    faults: (trusted) =>
      disks
        .ask(elsewhere, 'certificateFaults', files, place, presentCertificates(), trusted)
        .catch((error: Error) => [error.message]),
  };
};
