// pkcs11.toml: where the service is and with which credential a database may call it. Reads one
// file with the rights of the user who named it, checks that no one else can read or replace it,
// and parses it strictly. Errors name the path and what is wanted, never a value.
import { timingSafeEqual } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { maskedGuid } from '../../../server/base/redaction.ts';
import type { CauseName } from '../../schema/causes.ts';
import { type Told, tell } from '../causes.ts';
import { limits } from './limits.ts';
import { actingFor, type FileUser, type FoundFile, ownUser, UnsuitableFile, UserFiles } from './user-files.ts';

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface ProviderConfig {
  readonly path: string;
  /** scheme://host:port of the service. */
  readonly origin: string;
  /**
   * Path below the origin, with the access_guid and app_id and no slash at its end: secret, never
   * to be logged.
   */
  readonly basePath: string;
  /**
   * The service's address for logs: the mask of the access_guid shows only which ones are equal.
   */
  readonly redactedUrl: string;
  readonly applicationId: string;
  readonly accessToken: string;
  /** PEM file with the authorities to trust instead of the system's. */
  readonly caFile: string | null;
  /**
   * PEM files of the certificate that the service is shown, with its chain, and of its private key;
   * null for none.
   */
  readonly clientCertificate: { readonly certificate: string; readonly key: string } | null;
  /** For whom the file was read: with whose rights the files that it names are. */
  readonly user: FileUser;
  readonly connectTimeoutMs: number;
  readonly callTimeoutMs: number;
  /** Where the log goes; null for the default. */
  readonly logDir: string | null;
  readonly logLevel: LogLevel;
  /** Microseconds that the agent's socket loop spins after a call before it sleeps. */
  readonly spinUs: number;
  /**
   * How long the service's word of a key or an object spares the next question for it
   * (service-answer-cache.ts); 0: everything is asked.
   */
  readonly keyCheckMs: number;
  /** How long C_Initialize waits until the service answers; 0: not at all (wait-for-service.ts). */
  readonly waitSeconds: number;
}

/** Its message is the line of the log: what is wrong, and what to do. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly told: CauseName;
  constructor({ cause, line }: Told) {
    super(line);
    this.told = cause;
  }
}
const malformed = (config: string, error: string): ConfigError =>
  new ConfigError(tell('config-malformed', { config, error }));

type Row =
  | { readonly type: 'text'; readonly required: boolean }
  | { readonly type: 'integer'; readonly min: number; readonly max: number };
const fields = {
  server_url: { type: 'text', required: true },
  access_token: { type: 'text', required: true },
  ca_file: { type: 'text', required: false },
  client_certificate: { type: 'text', required: false },
  client_key: { type: 'text', required: false },
  connect_timeout_ms: { type: 'integer', min: 50, max: 60_000 },
  call_timeout_ms: { type: 'integer', min: 50, max: 600_000 },
  log_dir: { type: 'text', required: false },
  log_level: { type: 'text', required: false },
  spin_us: { type: 'integer', min: 0, max: 1000 },
  key_check_ms: { type: 'integer', min: 0, max: 1000 },
  wait_seconds: { type: 'integer', min: 0, max: 600 },
} as const satisfies Record<string, Row>;

const unreadable = (config: string, error: string): ConfigError =>
  new ConfigError(
    error === 'ENOENT' ? tell('config-missing', { config }) : tell('config-unreadable', { config, error }),
  );

export interface ReadConfig {
  /** Changes when the file is another one, or is changed. */
  readonly state: string;
  readonly user: FileUser;
  /** Null: the state is the known one. */
  readonly config: ProviderConfig | null;
}

/** Reads the file that a peer names, with its rights. Throws ConfigError. */
export const readConfig = async (
  files: UserFiles,
  peer: FileUser,
  path: string,
  { follow, known = '' }: { readonly follow: boolean; readonly known?: string },
): Promise<ReadConfig> => {
  if (!isAbsolute(path)) throw unreadable(path, 'the path must be absolute');
  const check = ({ uid: owner, mode }: FoundFile): void => {
    const { uid } = actingFor(peer, owner);
    if (owner !== uid) throw new ConfigError(tell('config-owner', { config: path, owner, uid }));
    if ((mode & 0o077) !== 0) throw new ConfigError(tell('config-mode', { config: path, mode: mode.toString(8) }));
  };
  try {
    const { uid, state, bytes } = await files.read(peer, path, { most: limits.configFile.most, follow, known, check });
    const user = actingFor(peer, uid);
    if (bytes === undefined) return { state, user, config: null };
    let text: string;
    try {
      files.count(peer, 'toml', bytes.length);
      text = bytes.toString('utf8');
    } finally {
      bytes.fill(0);
    }
    return { state, user, config: parseConfig(path, text, user) };
  } catch (error) {
    throw error instanceof UnsuitableFile ? unreadable(path, error.message) : error;
  }
};

/** Reads the file for this process itself. Throws ConfigError. */
export const loadConfig = async (path: string): Promise<ProviderConfig> => {
  const { config } = await readConfig(new UserFiles(), ownUser(), path, { follow: true });
  return config as ProviderConfig;
};

const parseToml = (path: string, text: string): Record<string, unknown> => {
  try {
    return parse(text);
  } catch (error) {
    // The parser's message quotes the lines around the mistake, which may hold the token.
    const where = error instanceof TomlError ? ` (line ${error.line}, column ${error.column})` : '';
    throw malformed(path, `not valid TOML${where}`);
  }
};

/** Parses and checks the text of a file. Throws ConfigError. */
export const parseConfig = (path: string, text: string, user: FileUser): ProviderConfig => {
  const table = parseToml(path, text);
  const bad = (field: string, wanted: string): ConfigError => malformed(path, `${field} ${wanted}`);
  for (const name of Object.keys(table)) {
    if (!Object.hasOwn(fields, name)) throw bad(name, `is unknown; known fields: ${Object.keys(fields).join(', ')}`);
  }
  for (const [name, row] of Object.entries(fields) as [string, Row][]) {
    const value = table[name];
    if (value === undefined) {
      if (row.type === 'text' && row.required) throw bad(name, 'is missing');
    } else if (row.type === 'text') {
      if (typeof value !== 'string' || value === '') throw bad(name, 'must be a string that is not empty');
    } else if (typeof value !== 'number' || !Number.isInteger(value) || value < row.min || value > row.max) {
      throw bad(name, `must be an integer from ${row.min} to ${row.max}`);
    }
  }
  const text_ = (name: keyof typeof fields): string | null => (table[name] as string | undefined) ?? null;
  const integer = (name: keyof typeof fields, otherwise: number): number =>
    (table[name] as number | undefined) ?? otherwise;

  const level = text_('log_level') ?? 'info';
  const logLevel = logLevels.find((each) => each === level);
  if (logLevel === undefined) throw bad('log_level', `must be one of ${logLevels.join(', ')}`);
  for (const name of ['ca_file', 'client_certificate', 'client_key', 'log_dir'] as const) {
    if (!isAbsolute(text_(name) ?? '/')) throw bad(name, 'must be an absolute path');
  }
  const [certificate, key] = [text_('client_certificate'), text_('client_key')];
  if ((certificate === null) !== (key === null))
    throw bad(
      certificate === null ? 'client_certificate' : 'client_key',
      'is missing: client_certificate and client_key must be set together',
    );
  const accessToken = text_('access_token') ?? '';
  if (/[^\x21-\x7e]/.test(accessToken)) throw bad('access_token', 'must be printable ASCII without spaces');
  return {
    path,
    ...parseServerUrl(text_('server_url') ?? '', accessToken, (wanted) => bad('server_url', wanted)),
    accessToken,
    caFile: text_('ca_file'),
    clientCertificate: certificate === null || key === null ? null : { certificate, key },
    user,
    connectTimeoutMs: integer('connect_timeout_ms', 1000),
    callTimeoutMs: integer('call_timeout_ms', 3000),
    logDir: text_('log_dir'),
    logLevel,
    spinUs: integer('spin_us', 20),
    keyCheckMs: integer('key_check_ms', 500),
    waitSeconds: integer('wait_seconds', 0),
  };
};

/** Null where a % is followed by something else than two digits of UTF-8. */
const decoded = (part: string): string | null => {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
};

const parseServerUrl = (
  text: string,
  accessToken: string,
  bad: (wanted: string) => ConfigError,
): Pick<ProviderConfig, 'origin' | 'basePath' | 'redactedUrl' | 'applicationId'> => {
  const shape = 'must be https://HOST/tde/v1/<access_guid>/<app_id>';
  if (!URL.canParse(text)) throw bad(shape);
  const url = new URL(text);
  const parts = /^(?<prefix>\/(?:.+\/)?tde\/v1)\/(?<guid>[^/]+)\/(?<app>[^/]+)\/?$/.exec(url.pathname)?.groups;
  const plain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (url.protocol !== 'https:' || parts === undefined || !plain) throw bad(shape);
  const { prefix = '', guid = '', app = '' } = parts;
  const [credential, applicationId] = [decoded(guid), decoded(app)];
  if (credential === null || applicationId === null) throw bad(shape);
  const same = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
  if (!same(Buffer.from(credential), Buffer.from(accessToken))) {
    throw bad('contains another access_guid than access_token');
  }
  return {
    origin: url.origin,
    basePath: `${prefix}/${guid}/${app}`,
    redactedUrl: `${url.origin}${prefix}/${maskedGuid(credential)}/${app}`,
    applicationId,
  };
};
