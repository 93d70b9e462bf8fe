// The configuration bundle of an application (server/clients/bundle), as `dke tde app register
// --bundle` writes it. It is made here, because only this process and the service's answer have the
// access_guid.

import { createHash } from 'node:crypto';
import { Writable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { bundleFiles } from '../../clients/bundle/bundle-files.ts';
import { archivePieces } from '../../clients/bundle/tar-archive.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { IssuedAccessGuid } from '../../contract/api/tde-applications-routes.ts';
import {
  architectureNames,
  databaseNames,
  databases,
  packagesFor,
  systemNames,
  type Target,
} from '../../domain/bundle-targets.ts';
import type { Caller } from '../service/caller.ts';
import type { Given } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';

export const bundleFlags = {
  '--bundle <file>':
    'write a configuration bundle (.tar.gz, mode 600) instead: pkcs11.toml, the certificate to trust, checksums, packages and install.sh',
  '--system <system>': { help: 'operating system of the database host', choices: systemNames },
  '--database <database>': { help: 'database that runs there', choices: databaseNames },
  '--architecture <architecture>': { help: 'its processors', choices: architectureNames, default: 'x86_64' },
  '--database-ca-file <path>':
    'ca_file of pkcs11.toml: where the database host has the certificate to trust. A bundle then has no certificate',
} as const;
export type BundleOptions = Given<typeof bundleFlags> & { readonly out?: string; readonly force?: boolean };

/** Before the access_guid is issued: an error after that would lose it. */
export const checkBundle = ({ bundle, system, database, out }: BundleOptions): void => {
  if (bundle === undefined) {
    if (system !== undefined || database !== undefined)
      throw new CommandError('config', '--system and --database describe a bundle', { hint: 'add --bundle <file>' });
    return;
  }
  if (out !== undefined)
    throw new CommandError('config', '--bundle and --out cannot be used together', {
      hint: 'the bundle contains pkcs11.toml',
    });
  if (system === undefined || database === undefined)
    throw new CommandError('config', '--bundle needs --system and --database', {
      hint: `--system ${systemNames.join('|')} --database ${databaseNames.join('|')}`,
    });
};

/** pkcs11.toml. */
export const tomlOf = ({ config }: IssuedAccessGuid, { databaseCaFile }: BundleOptions): string =>
  databaseCaFile === undefined
    ? config.pkcs11_toml
    : `${config.pkcs11_toml.trimEnd()}\nca_file = ${JSON.stringify(databaseCaFile)}\n`;

interface Fetched {
  readonly name: string;
  readonly sha256: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

/**
 * The packages of the target that the service has. The bundle is useful without them, so a failure
 * is only reported.
 */
const fetchPackages = async (
  { call, stream }: Caller,
  target: Target,
): Promise<{ readonly packages: readonly Fetched[]; readonly missing: readonly string[] }> => {
  const warn = (text: string): void => void process.stderr.write(`dke: ${text}\n`);
  const packages: Fetched[] = [];
  try {
    const { found, missing } = packagesFor(target, (await call(operations.packages.list)).items);
    for (const { name, sha256 } of found) {
      const parts: Buffer[] = [];
      const into = new Writable({
        write(part: Buffer, _, done) {
          parts.push(part);
          done();
        },
      });
      await stream(operations.packages.download, { path: { name } }, into);
      const content = Buffer.concat(parts);
      if (createHash('sha256').update(content).digest('hex') !== sha256)
        throw new CommandError('internal', `${name} does not match its checksum`);
      packages.push({ name, sha256, content });
    }
    if (missing.length > 0)
      warn(
        `the service does not distribute ${missing.join(', ')} for this host: the bundle says that it must be installed first`,
      );
    return { packages, missing };
  } catch (error) {
    warn(`the bundle contains no packages: ${(error as Error).message}`);
    return { packages: [], missing: databases[target.database].packages };
  }
};

/** The archive. It is secret: the caller wipes it. */
export const makeBundle = async (
  caller: Caller,
  application: string,
  issued: IssuedAccessGuid,
  options: BundleOptions,
): Promise<Uint8Array> => {
  const { system, database, architecture, databaseCaFile } = options;
  if (system === undefined || database === undefined)
    throw new CommandError('internal', 'a bundle without its database host');
  const target = { system, database, architecture };
  const { packages, missing } = await fetchPackages(caller, target);
  // What this command trusts has led it to the service; otherwise the service says what its own
  // certificate needs.
  const authority = caller.authority?.toString('latin1') ?? issued.config.ca_pem;
  const files = await bundleFiles({
    ...{ target, application, packages, missing },
    config: tomlOf(issued, options),
    authority: databaseCaFile === undefined ? authority : null,
  });
  const all = [...files, ...packages.map((each) => ({ ...each, mode: 0o644 }))];
  const archive = Buffer.concat(archivePieces(all, Math.floor(Date.now() / 1000)));
  for (const { content } of files) content.fill(0);
  // Packages are compressed already.
  const compressed = gzipSync(archive, { level: 1 });
  archive.fill(0);
  return compressed;
};
