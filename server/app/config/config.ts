// dke.toml: its tables, and the configuration that they make. Unknown fields are errors; each error
// names the field and what to do. Relative paths are relative to the file's own folder, or to the
// working directory when there is no file. A field has one declaration, in the file of its table;
// the types follow from it. docs/dke.toml documents the same fields for people; a test compares
// both.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { maskUrl } from '../../base/redaction.ts';
import { StartError } from '../../base/start-error.ts';
import { checkFile } from './check-file.ts';
import { observationTables, readObservation } from './reports.ts';
import { readService, serviceTables } from './service.ts';
import { readStorage, storageTables } from './storage.ts';

const schema = z
  .strictObject({ ...serviceTables, ...storageTables, ...observationTables })
  .refine(
    ({ people: { invitation_target: named }, notifications: { targets } }) =>
      named === undefined || targets.some(({ name, type }) => name === named && type === 'email'),
    { path: ['people', 'invitation_target'], message: 'must be the name of a target of notifications of type "email"' },
  );
type Given = z.infer<typeof schema>;

/** A setting as the file has it, for people. */
export interface Setting {
  /** `server.port`. */
  readonly name: string;
  /** The value as JSON; null: not set. */
  readonly value: string | null;
  readonly origin: 'file' | 'default';
}

const readTables = (given: Given, folder: string) => ({
  ...readService(given, folder),
  ...readStorage(given, folder),
  ...readObservation(given, folder),
});

export interface Config extends ReturnType<typeof readTables> {
  /**
   * Every setting and its origin. None is a secret: secrets are in files of their own, and a
   * setting is the path.
   */
  readonly settings: readonly Setting[];
  /** The file that was read; null for the embedded defaults. */
  readonly source: string | null;
}
export type AuditSinkConfig = Config['auditSinks'][number];
export type NotificationTargetConfig = Config['notificationTargets'][number];

const complain = (source: string, error: z.ZodError): StartError => {
  const [issue] = error.issues;
  const path = issue?.path.join('.') ?? '';
  if (issue?.code === 'unrecognized_keys')
    return new StartError(
      'config',
      `${source}: unknown field ${[path, issue.keys[0]].filter(Boolean).join('.')}: remove it or correct its name`,
    );
  return new StartError('config', `${source}: ${path || 'the file'}: ${issue?.message ?? 'does not fit'}`);
};

/** Parses the text of a dke.toml. Throws StartError 'config'. */
export const parseConfig = (text: string, source: string | null, folder: string): Config => {
  const name = source ?? 'embedded defaults';
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    if (error instanceof TomlError)
      throw new StartError('config', `${name}: not TOML at line ${error.line}, column ${error.column}`, {
        cause: error,
      });
    throw error;
  }
  // Once a start: to compile the schema takes longer than to walk through it.
  const result = schema.safeParse(value, { jitless: true });
  if (!result.success) throw complain(name, result.error);
  return { ...readTables(result.data, folder), source, settings: listSettings(result.data, value) };
};

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const maskUrls = (_name: string, value: unknown): unknown =>
  typeof value === 'string' && /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? maskUrl(value) : value;

const listSettings = (parsed: Given, given: unknown): readonly Setting[] =>
  Object.entries(parsed).flatMap(([table, fields]) => {
    const values: readonly (readonly [string, unknown])[] = Object.entries(fields);
    const own = isTable(given) && isTable(given[table]) ? given[table] : {};
    return values.map(([name, value]) => {
      return {
        name: `${table}.${name}`,
        // Everyone who may read the status sees it, and the URL of a webhook may contain a token.
        value: value === undefined ? null : JSON.stringify(value, maskUrls),
        origin: Object.hasOwn(own, name) ? ('file' as const) : ('default' as const),
      };
    });
  });

export const defaultConfig = (folder: string): Config => parseConfig('', null, folder);

/**
 * The file of a command that names none: in the working directory, else that of the package. A
 * folder that the user may not search has none, such as root's for `sudo -u dke`.
 */
export const findConfig = (workingDirectory: string): string | undefined =>
  [resolve(workingDirectory, 'dke.toml'), '/etc/dke/dke.toml'].find((file) => existsSync(file));

/** Reads a configuration file. `path` undefined: that of `findConfig`, else the defaults. */
export const loadConfig = (path: string | undefined, workingDirectory: string): Config => {
  const found = path ?? findConfig(workingDirectory);
  if (found === undefined) return defaultConfig(workingDirectory);
  const named = resolve(workingDirectory, found);
  if (statSync(named, { throwIfNoEntry: false }) === undefined)
    throw new StartError('config', `${named} does not exist: name an existing file with --config`);
  checkFile(named, 'public');
  let text: string;
  try {
    text = readFileSync(named, 'utf8');
  } catch (error) {
    throw new StartError('permission', `${named} cannot be read`, { cause: error });
  }
  return parseConfig(text, named, dirname(named));
};

/**
 * For a command that reads or writes the service's own files. Those that root made would be closed
 * to the service, and the files of the service do not become root's.
 */
export const loadHostConfig = (path: string | undefined, workingDirectory: string): Config => {
  const config = loadConfig(path, workingDirectory);
  const owner = statSync(config.dataDirectory, { throwIfNoEntry: false })?.uid;
  if (owner !== undefined && owner !== process.geteuid?.())
    throw new StartError('permission', `${config.dataDirectory} belongs to user ${owner}`, {
      fix: `run the command as this user: sudo -u '#${owner}' dke …`,
    });
  return config;
};
