// The identity provider of the configuration, and the authorities that are trusted in addition to
// those of Node.

import type { OpenIdOptions } from '../../adapters/identity/open-id.ts';
import { StartError } from '../../base/start-error.ts';
import { type Role, roleNames, rowOf } from '../../domain/access.ts';
import type { Config } from '../config/config.ts';
import { readPem } from '../tls/reload-certificates.ts';
import type { Disks } from './disks.ts';

/** The certificates of a PEM file, one by one. */
export const readAuthorities = (path: string | undefined): readonly string[] =>
  path === undefined ? [] : (readPem(path).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []);

/** Roles by the value of the claim. Throws StartError for a role that a claim cannot give. */
export const rolesOf = (roles: Readonly<Record<string, string>>): ReadonlyMap<string, Role> => {
  const known = new Map<string, Role>();
  for (const [value, name] of Object.entries(roles)) {
    const role = roleNames.find((each) => each === name);
    if (role === undefined || rowOf(role).scoped === true || role === 'break-glass')
      throw new StartError('config', `oidc.roles: ${name} is not a role that a claim can give`, {
        fix: 'run dke token roles for the list',
      });
    known.set(value, role);
  }
  return known;
};

export const readOpenId = (
  { clientSecretFile, ca, roles, ...rest }: NonNullable<Config['oidc']>,
  { files: { read } }: Pick<Disks, 'files'>,
): OpenIdOptions => ({
  ...rest,
  roles: rolesOf(roles),
  clientSecret:
    clientSecretFile === undefined ? undefined : async () => (await read(clientSecretFile)).toString('utf8').trim(),
  ca: ca === undefined ? undefined : readPem(ca),
});
