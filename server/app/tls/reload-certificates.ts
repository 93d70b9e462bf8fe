// The certificates and keys of the listener, from their files: what is served at a start, and what
// may replace it at SIGHUP. A start serves what there is, and warns; a replacement must not be
// worse than what works already.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../base/start-error.ts';
import type { TlsMaterial } from '../../fronts/listener/listener.ts';
import type { Log } from '../../ports/log.ts';
import { checkFile } from '../config/check-file.ts';
import type { Config } from '../config/config.ts';
import {
  damageOf,
  dateFault,
  fits,
  fitsAnother,
  orderFault,
  replacementFault,
  summaryOf,
} from './served-certificates.ts';

type Pairs = TlsMaterial['pairs'];
export interface PairFiles {
  readonly certificate: string;
  readonly key: string;
}

export const readPem = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new StartError('permission', `${path} cannot be read (${code})`, { cause: error });
  }
};

/** Who may write and read a file of a pair. */
const requirePem = (path: string, kind: 'public' | 'secret', { dataDirectory }: TlsPlace): void => {
  try {
    checkFile(path, kind);
  } catch (error) {
    if (!(error instanceof StartError) || error.fix !== undefined) throw error;
    const isOwn = path.startsWith(join(dataDirectory, 'tls.'));
    throw new StartError(error.class, error.evidence, {
      fix: isOwn
        ? `put tls.crt and tls.key back from a backup, or remove both: the next start creates another certificate, which clients have to be given`
        : 'put the file there, or correct [tls] in dke.toml',
      cause: error,
    });
  }
};

/**
 * A certificate and its key that TLS can serve. Throws StartError 'config' with the name of the
 * damaged file.
 */
const readPair = (
  files: { readonly certificate: string; readonly key: string },
  selfSigned: boolean,
): TlsMaterial['pairs'][number] => {
  const pair = { certificate: readPem(files.certificate), key: readPem(files.key) };
  const damaged = (what: string, cause?: unknown): StartError =>
    new StartError('config', what, { fix: 'check [tls], and put the whole one in its place', cause });
  let damage: string | undefined;
  try {
    damage = damageOf(pair.certificate, selfSigned);
  } catch (error) {
    throw damaged(`the certificate ${files.certificate} cannot be read`, error);
  }
  if (damage !== undefined) throw damaged(`the certificate ${files.certificate} is damaged, ${damage}`);
  let fitting: boolean;
  try {
    fitting = fits(pair.key, pair.certificate);
  } catch (error) {
    throw damaged(`the key ${files.key} cannot be read`, error);
  }
  if (!fitting && fitsAnother(pair.key, pair.certificate))
    throw new StartError('config', `${files.certificate}: the chain is in the wrong order`, {
      fix: "put the server's own certificate first, then its issuer",
    });
  if (!fitting) throw damaged(`the key ${files.key} is damaged, or is not that of ${files.certificate}`);
  return pair;
};

export interface TlsPlace {
  readonly ownCertificate: string;
  readonly dataDirectory: string;
  readonly publicNames: readonly string[];
}

/** The pairs of a configuration, the one of the service itself among them. */
export const pairFilesOf = ({ dataDirectory, tls, server }: Pick<Config, 'dataDirectory' | 'tls' | 'server'>) => {
  const own = { certificate: join(dataDirectory, 'tls.crt'), key: join(dataDirectory, 'tls.key') };
  const place: TlsPlace = { ownCertificate: own.certificate, dataDirectory, publicNames: server.publicNames };
  return { own, place, pairs: [tls.main ?? own, ...tls.additional] as readonly PairFiles[] };
};

export interface Replacement {
  readonly pairs: Pairs;
  /**
   * Faults of the new pairs, which replace the present ones all the same because the operator has
   * forced it; empty: none were found.
   */
  readonly faults: readonly string[];
}

export interface TlsFiles {
  /** Throws StartError. */
  readPairs(): Pairs;
  /**
   * Reads the pairs that are to replace the present certificates (PEM). `authorities`: whose
   * certificates need not be in a chain. Throws StartError when the new ones have faults, unless
   * the operator has forced the replacement.
   */
  renewPairs(present: readonly string[], authorities: readonly string[]): Replacement;
  /** Why these should not replace the present certificates. */
  faultsOf(present: readonly string[], next: Pairs, authorities: readonly string[]): readonly string[];
}

/** Certificates of these files are served from now on. */
export const logTaken = (files: readonly PairFiles[], pairs: Pairs, log: Log): void => {
  for (const [index, { certificate }] of pairs.entries()) {
    const fields = { file: files[index]?.certificate, ...summaryOf(certificate) };
    const fault = dateFault(certificate, Date.now()) ?? orderFault(certificate);
    if (fault === undefined) log.info('serving a certificate', fields);
    else log.warn('serving a certificate that clients may refuse', { ...fields, fault });
  }
};

export const openTlsFiles = (files: readonly PairFiles[], place: TlsPlace): TlsFiles => {
  const force = join(place.dataDirectory, 'force-certificate');
  /** At a start, for the doctor and for a reload. */
  const readPairs = (): Pairs =>
    files.map((pair) => {
      requirePem(pair.certificate, 'public', place);
      requirePem(pair.key, 'secret', place);
      return readPair(pair, pair.certificate === place.ownCertificate);
    });
  /** Whether the operator has said that it is meant. It counts once. */
  const isForced = (): boolean => {
    try {
      rmSync(force);
      return true;
    } catch {
      return false;
    }
  };
  const faultsOf: TlsFiles['faultsOf'] = (present, next, authorities) => {
    const now = Date.now();
    return next.flatMap(({ certificate }, index) => {
      const fault = replacementFault({
        ...{ present: present[index] ?? certificate, next: certificate, authorities, now },
        names: index === 0 ? place.publicNames : [],
      });
      return fault === undefined ? [] : [`${files[index]?.certificate}: ${fault}`];
    });
  };
  return {
    readPairs,
    faultsOf,
    renewPairs: (present, authorities) => {
      const next = readPairs();
      const faults = faultsOf(present, next, authorities);
      if (faults.length > 0 && !isForced())
        throw new StartError(
          'config',
          `${faults.join('; ')}. If this is intended: touch ${force}, and send SIGHUP again`,
        );
      return { pairs: next, faults };
    },
  };
};
