// Which databases share an access_guid, told from their pkcs11.toml files: they share their master
// keys, so a key that is destroyed for one is destroyed for all of them. The check before a
// destructive test. Credentials are compared by a keyed hash with a key of this run, and neither
// they nor the hash are shown.
import { createHmac, randomBytes } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { loadConfig } from '../agent/settings/config.ts';
import { asOwnerAsync, effectiveOwner, ownerOfPath } from './owner.ts';

export interface InstanceFile {
  readonly path: string;
  /** Null: the file cannot be used; `fault` says why. */
  readonly applicationId: string | null;
  readonly redactedUrl: string | null;
  readonly fault: string | null;
}

export interface Comparison {
  readonly instances: readonly InstanceFile[];
  /** Paths of files with one access_guid, two or more each. */
  readonly shared: readonly (readonly string[])[];
  /** Paths that lead to one and the same file. */
  readonly sameFile: readonly (readonly string[])[];
}

/** The paths that have one key, two or more each. */
export const grouped = (pairs: readonly (readonly [key: string, path: string])[]): readonly (readonly string[])[] => {
  const groups = new Map<string, string[]>();
  for (const [key, path] of pairs) groups.set(key, [...(groups.get(key) ?? []), path]);
  return [...groups.values()].filter((each) => each.length > 1);
};

/** Reads each file as its own owner, as the database does. */
export const compareConfigurations = async (paths: readonly string[]): Promise<Comparison> => {
  const secret = randomBytes(32);
  const marks: (readonly [string, string])[] = [];
  const files: (readonly [string, string])[] = [];
  const read = async (path: string): Promise<InstanceFile> => {
    try {
      const real = realpathSync(path);
      const { dev, ino } = statSync(real);
      files.push([`${dev}:${ino}`, path]);
      const owner = ownerOfPath(real) ?? effectiveOwner();
      const config = await asOwnerAsync(owner, () => loadConfig(path));
      marks.push([createHmac('sha256', secret).update(config.accessToken).digest('base64'), path]);
      return { path, applicationId: config.applicationId, redactedUrl: config.redactedUrl, fault: null };
    } catch (error) {
      return {
        path,
        applicationId: null,
        redactedUrl: null,
        fault: error instanceof Error ? error.message : String(error),
      };
    }
  };
  const instances: InstanceFile[] = [];
  // One after the other: each as its own user.
  for (const path of paths) instances.push(await read(path));
  return { instances, shared: grouped(marks), sameFile: grouped(files) };
};
