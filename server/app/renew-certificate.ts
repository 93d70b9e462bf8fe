// The self-signed certificate of a service, renewed in two steps, so that clients that trust exactly this certificate are never cut off: the next one
// is made and given to them beside the present one; later it takes its place.

import { existsSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../base/start-error.ts';
import type { Config } from '../config.ts';
import { openCore } from '../native/core.ts';
import { summaryOf } from '../native/served-certificates.ts';
import { replaceFile } from '../roots/files.ts';
import { selfSignedDays } from './certificates.ts';

export interface RenewedCertificate {
  readonly state: 'prepared' | 'active';
  /** The certificate, and what clients trust: while `prepared`, the present one and the next one. */
  readonly certificate: string;
  readonly trust: string;
  readonly fingerprint: string;
  readonly expiresAt: string;
  readonly next: string;
}

const filesOf = ({ dataDirectory }: Config) => {
  const at = (name: string): string => join(dataDirectory, name);
  return {
    present: { certificate: at('tls.crt'), key: at('tls.key') },
    next: { certificate: at('tls.next.crt'), key: at('tls.next.key') },
    trust: at('tls.trust.crt'),
  };
};

const requireOwn = (config: Config): ReturnType<typeof filesOf> => {
  const files = filesOf(config);
  const { certificate } = files.present;
  if (config.tls.main !== undefined)
    throw new StartError(
      'config',
      `[tls] names ${config.tls.main.certificate}: renew it where it was issued, put it in its place and send SIGHUP`,
    );
  const owner = statSync(certificate, { throwIfNoEntry: false })?.uid;
  if (owner === undefined)
    throw new StartError('config', `there is no certificate ${certificate}: name the service's dke.toml with --config`);
  if (owner !== process.getuid?.())
    throw new StartError(
      'permission',
      `${certificate} belongs to user ${owner}: run the command as this user (sudo -u)`,
    );
  return files;
};

/** Makes the next certificate, unless there is one. The service goes on with the present one. Throws StartError. */
export const prepareCertificate = (config: Config): RenewedCertificate => {
  const { present, next, trust } = requireOwn(config);
  if (!existsSync(next.certificate)) {
    const { lockedBytes, allowUnlocked } = config.memory;
    const { raw } = openCore({ allowUnlocked, ...(lockedBytes === undefined ? {} : { arenaBytes: lockedBytes }) });
    // Of an attempt that was cut off.
    rmSync(next.key, { force: true });
    const names = [...config.server.publicNames];
    replaceFile(next.certificate, raw.createSelfSignedCertificate({ keyPath: next.key, names, days: selfSignedDays }));
  }
  const pem = readFileSync(next.certificate, 'utf8');
  replaceFile(trust, `${readFileSync(present.certificate, 'utf8').trimEnd()}\n${pem}`);
  return {
    state: 'prepared',
    certificate: next.certificate,
    trust,
    ...shown(pem),
    next: `give ${trust} to every client as its ca_file, then dke server renew-certificate --activate`,
  };
};

const shown = (pem: string): Pick<RenewedCertificate, 'fingerprint' | 'expiresAt'> => {
  const { fingerprint, expiresAt } = summaryOf(pem);
  return { fingerprint, expiresAt };
};

/** Puts the next certificate in the place of the present one. Safe to rerun when it was cut off. Throws StartError. */
export const activateCertificate = (config: Config): RenewedCertificate => {
  const { present, next, trust } = requireOwn(config);
  if (!existsSync(next.certificate))
    throw new StartError('config', 'there is no next certificate: dke server renew-certificate makes it');
  if (existsSync(next.key)) renameSync(next.key, present.key);
  renameSync(next.certificate, present.certificate);
  return {
    state: 'active',
    certificate: present.certificate,
    trust,
    ...shown(readFileSync(present.certificate, 'utf8')),
    next: 'systemctl reload dke-server (or send SIGHUP to the service)',
  };
};
