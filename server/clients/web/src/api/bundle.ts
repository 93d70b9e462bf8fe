// The configuration bundle of an application, made in this browser: the access_guid is not sent
// anywhere again.

import { databases, packagesFor, type Target } from '../../../../domain/bundle-targets.ts';
import { bundleFiles } from '../../../bundle/bundle-files.ts';
import { archivePieces } from '../../../bundle/tar-archive.ts';
import { send, sendForBytes } from './client.ts';
import { toHex } from './hex.ts';
import type { DistributedPackage, IssuedAccessGuid } from './types.ts';

interface Fetched {
  readonly name: string;
  readonly sha256: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

const fetchPackage = async ({ name, sha256 }: DistributedPackage): Promise<Fetched> => {
  const content = await sendForBytes({ method: 'GET', path: `/api/packages/${encodeURIComponent(name)}/file` });
  if (toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', content))) !== sha256)
    throw new Error(`${name} does not match its checksum.`);
  return { name, sha256, content };
};

/** `withoutPackages`: the administrator installs them. Throws ApiProblem. */
export const makeBundle = async (
  target: Target,
  application: string,
  { config }: IssuedAccessGuid,
  withoutPackages: boolean,
): Promise<{ readonly archive: Blob; readonly missing: readonly string[] }> => {
  const { found, missing } = withoutPackages
    ? { found: [], missing: databases[target.database].packages }
    : packagesFor(
        target,
        (await send<{ readonly items: readonly DistributedPackage[] }>({ method: 'GET', path: '/api/packages' })).items,
      );
  const packages = await Promise.all(found.map(fetchPackage));
  const files = await bundleFiles({
    ...{ target, application, packages, missing },
    config: config.pkcs11_toml,
    authority: config.ca_pem,
  });
  const all = [...files, ...packages.map((each) => ({ ...each, mode: 0o644 }))];
  const archive = new Blob([...archivePieces(all, Math.floor(Date.now() / 1000))]);
  const compressed = archive.stream().pipeThrough(new CompressionStream('gzip'));
  return { archive: await new Response(compressed).blob(), missing };
};
