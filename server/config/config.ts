// dke.toml: every field, its default, and the checks. Unknown fields are errors; each error names the field and what to do.
// Relative paths are relative to the file's own folder, or to the working directory when there is no file.
// docs/dke.toml documents the same fields for people; a test keeps the two together.

import { readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { Cron } from 'croner';
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { parseVerifierKey } from '../base/checkpoint.ts';
import { StartError } from '../base/start-error.ts';
import { checkFile } from './check-file.ts';

const hostName = z.string().regex(/^[A-Za-z0-9.:-]{1,253}$/, 'a host name or an address');
const network = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'an address or a network like 10.0.0.0/8');
const httpsAddress = z.url({ protocol: /^https$/, error: 'an address that begins with https://' });
const seconds = (most: number) => z.int().min(1).max(most);

const filePath = z.string().min(1);
const sinkName = z.string().regex(/^[a-z0-9-]{1,40}$/, 'lower-case letters, digits and hyphens');
const sinkTls = { ca: filePath.optional(), certificate: filePath.optional(), key: filePath.optional() };
/** What a sink takes; `endpoints` are ids. */
const sinkLog = {
  log: z.enum(['audit', 'requests']).default('audit'),
  endpoints: z.array(z.uuid('the id of an endpoint, from dke endpoint list')).max(1000).default([]),
};
const auditSink = z.discriminatedUnion('type', [
  z.strictObject({
    name: sinkName,
    type: z.literal('file'),
    ...sinkLog,
    path: filePath,
    rotate_mib: z.int().min(1).max(100_000).default(100),
    keep: z.int().min(0).max(100_000).default(0),
  }),
  z.strictObject({
    name: sinkName,
    type: z.literal('syslog'),
    ...sinkLog,
    host: hostName,
    port: z.int().min(1).max(65_535).default(6514),
    ...sinkTls,
  }),
  z.strictObject({
    name: sinkName,
    type: z.literal('https'),
    ...sinkLog,
    url: httpsAddress,
    token_file: filePath.optional(),
    ...sinkTls,
  }),
]);

const wayName = z.string().regex(/^[a-z0-9-]{1,40}$/, 'lower-case letters, digits and hyphens');
const rootWay = z.discriminatedUnion('type', [
  z.strictObject({ name: wayName, type: z.literal('file'), path: filePath }),
  z
    .strictObject({
      name: wayName,
      type: z.literal('passphrase'),
      credential: z
        .string()
        .regex(/^[A-Za-z0-9._-]{1,100}$/)
        .optional(),
      file: filePath.optional(),
      descriptor: z.int().min(3).max(1000).optional(),
    })
    .refine(
      ({ credential, file, descriptor }) =>
        [credential, file, descriptor].filter((each) => each !== undefined).length <= 1,
      'one of credential, file and descriptor',
    ),
  z.strictObject({
    name: wayName,
    type: z.literal('pkcs11'),
    module: filePath,
    token: z.string().min(1).max(32),
    key: z.string().min(1).max(100),
    pin_file: filePath,
    timeout_seconds: seconds(600).default(20),
  }),
]);
/** Five fields, in UTC; seconds are no use for snapshots. */
const isCron = (text: string): boolean => {
  try {
    return text.trim().split(/\s+/).length === 5 && new Cron(text, { paused: true }).nextRun() !== null;
  } catch {
    return false;
  }
};
const leastSeverity = z.enum(['info', 'low', 'medium', 'high', 'critical']).default('low');
const notificationTarget = z.discriminatedUnion('type', [
  z.strictObject({
    name: sinkName,
    type: z.literal('webhook'),
    url: httpsAddress,
    secret_file: filePath,
    ca: filePath.optional(),
    allow_private: z.boolean().default(false),
    least_severity: leastSeverity,
  }),
  z
    .strictObject({
      name: sinkName,
      type: z.literal('email'),
      host: hostName,
      port: z.int().min(1).max(65_535).default(587),
      tls: z.enum(['starttls', 'implicit']).default('starttls'),
      from: z.email(),
      to: z.array(z.email()).min(1).max(50),
      user: z.string().min(1).max(256).optional(),
      password_file: filePath.optional(),
      ca: filePath.optional(),
      least_severity: leastSeverity,
    })
    .refine(
      (mail) => (mail.user === undefined) === (mail.password_file === undefined),
      'user and password_file come together',
    ),
]);

const schema = z.strictObject({
  server: z
    .strictObject({
      host: hostName.default('0.0.0.0'),
      port: z.int().min(0).max(65_535).default(443),
      public_names: z.array(hostName).min(1).max(20).default(['localhost', '127.0.0.1']),
      public_url: z
        .string()
        .regex(/^https:\/\/[A-Za-z0-9.:[\]-]+$/, 'https://HOST or https://HOST:PORT without a path')
        .optional(),
      drain_notice_seconds: z.int().min(0).max(600).default(0),
      drain_seconds: seconds(600).default(10),
      trusted_proxies: z.array(network).max(100).default([]),
    })
    .prefault({}),
  data: z.strictObject({ directory: z.string().min(1).default('dke-data') }).prefault({}),
  tls: z
    .strictObject({
      certificate: z.string().min(1).optional(),
      key: z.string().min(1).optional(),
      additional: z
        .array(z.strictObject({ certificate: z.string().min(1), key: z.string().min(1) }))
        .max(50)
        .default([]),
      client_certificates: z.boolean().default(false),
    })
    .refine((tls) => (tls.certificate === undefined) === (tls.key === undefined), 'certificate and key come together')
    .prefault({}),
  store: z
    .strictObject({
      type: z.enum(['sqlite', 'postgresql']).default('sqlite'),
      host: z.string().min(1).max(253).optional(),
      port: z.int().min(1).max(65_535).default(5432),
      user: z.string().min(1).max(63).default('dke'),
      database: z.string().min(1).max(63).default('dke'),
      password_file: filePath.optional(),
      ca: filePath.optional(),
      readers: z.int().min(1).max(100).default(8),
      contact_seconds: z.int().min(0).max(86_400).default(300),
      replica_lag_seconds: z.int().min(0).max(604_800).default(60),
    })
    .refine(({ type, host }) => type === 'sqlite' || host !== undefined, 'postgresql needs its host')
    .prefault({}),
  node: z
    .strictObject({
      name: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/)
        .optional(),
    })
    .prefault({}),
  root: z
    .strictObject({
      path: z.string().min(1).optional(),
      providers: z
        .array(rootWay)
        .max(8)
        .refine((ways) => new Set(ways.map(({ name }) => name)).size === ways.length, 'names are given once each')
        .default([]),
    })
    .prefault({}),
  erasure: z
    .strictObject({
      gather_ms: z.int().min(0).max(3_600_000).default(1000),
      missing_snapshots: z.enum(['wait', 'name']).default('wait'),
    })
    .prefault({}),
  snapshots: z
    .strictObject({
      directory: filePath.optional(),
      schedule: z
        .string()
        .min(1)
        .max(200)
        .refine(isCron, 'is no cron expression: five fields, for example 0 3 * * *')
        .optional(),
      keep_count: z.int().min(1).max(10_000).optional(),
      keep_days: z.int().min(1).max(36_500).optional(),
      undelete_days: z.int().min(0).max(3650).default(30),
      trusted_signers: z
        .array(
          z
            .string()
            .max(500)
            .refine(
              (text) => parseVerifierKey(text) !== null,
              'is no verifier key: it is what dke audit log shows as verifierKey on the service that made the snapshots',
            ),
        )
        .max(100)
        .default([]),
      restore_second_person: z.boolean().default(true),
    })
    .prefault({}),
  /** How long a deleted tenant can be restored. */
  tenants: z.strictObject({ retention_days: z.int().min(1).max(3650).default(30) }).prefault({}),
  limits: z
    .strictObject({
      cached_objects: z.int().min(16).max(1_000_000).default(10_000),
      instances_per_application: z.int().min(10).max(100_000).default(1_000),
      queued_requests: z.int().min(100).max(1_000_000).default(20_000),
      request_log_days: z.int().min(1).max(3650).default(30),
      request_log_rows: z.int().min(1000).max(1_000_000_000).default(5_000_000),
      connections: z.int().min(10).max(1_000_000).default(10_000),
    })
    .prefault({}),
  people: z
    .strictObject({
      second_factor: z.enum(['required', 'optional']).default('required'),
      session_idle_minutes: z.int().min(1).max(1440).default(60),
      session_hours: z.int().min(1).max(168).default(12),
      invitation_hours: z.int().min(1).max(720).default(72),
    })
    .prefault({}),
  oidc: z
    .strictObject({
      issuer: httpsAddress.optional(),
      client_id: z.string().min(1).max(255).optional(),
      client_secret_file: filePath.optional(),
      label: z.string().min(1).max(64).default('single sign-on'),
      scopes: z.string().min(1).max(500).default('openid profile email'),
      ca: filePath.optional(),
      role_claim: z.string().min(1).max(255).optional(),
      roles: z.record(z.string(), z.string()).default({}),
      second_factor: z.enum(['claims', 'provider', 'ours']).default('claims'),
      token_hours: z.int().min(1).max(8760).default(24),
    })
    .refine(
      ({ issuer, client_id }) => (issuer === undefined) === (client_id === undefined),
      'issuer and client_id come together',
    )
    .prefault({}),
  metrics: z.strictObject({ loopback: z.boolean().default(true) }).prefault({}),
  memory: z
    .strictObject({
      locked_bytes: z
        .int()
        .min(131_072)
        .max(1 << 30)
        .optional(),
      allow_unlocked: z.boolean().default(false),
    })
    .prefault({}),
  audit: z
    .strictObject({
      sinks: z
        .array(auditSink)
        .max(20)
        .refine((sinks) => new Set(sinks.map(({ name }) => name)).size === sinks.length, 'names are given once each')
        .refine(
          (sinks) => sinks.every(({ log, endpoints }) => log === 'requests' || endpoints.length === 0),
          'endpoints filter only a sink with log = "requests"',
        )
        .default([]),
    })
    .prefault({}),
  approvals: z.strictObject({ expire_hours: z.int().min(1).max(8760).default(72) }).prefault({}),
  notifications: z
    .strictObject({
      token_days: z.int().min(0).max(3650).default(365),
      backup_days: z.int().min(0).max(3650).default(7),
      targets: z
        .array(notificationTarget)
        .max(20)
        .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'names are given once each')
        .default([]),
    })
    .prefault({}),
  external_key_stores: z.strictObject({ probe_seconds: seconds(86_400).default(300) }).prefault({}),
  aws: z
    .strictObject({
      read: z.boolean().default(false),
      kms_endpoint: httpsAddress.optional(),
      cloudwatch_endpoint: httpsAddress.optional(),
    })
    .prefault({}),
  diagnostics: z
    .strictObject({
      trusted_authorities: z.string().min(1).optional(),
      cloud_networks: z.array(network).max(10_000).default([]),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
      destination: z.string().min(1).default('stderr'),
      rotate_mib: z.int().min(1).max(1_000_000).default(100),
      rotate_days: z.int().min(0).max(3650).default(7),
      keep: z.int().min(0).max(100_000).default(10),
    })
    .prefault({}),
  access_log: z
    .strictObject({
      file: filePath.optional(),
      rotate_mib: z.int().min(1).max(1_000_000).default(100),
      rotate_days: z.int().min(0).max(3650).default(7),
      keep: z.int().min(0).max(100_000).default(10),
    })
    .prefault({}),
  telemetry: z
    .strictObject({
      endpoint: z.url({ protocol: /^https?$/, error: 'an address that begins with https:// or http://' }).optional(),
      token_file: filePath.optional(),
      ca: filePath.optional(),
      traces: z.boolean().default(true),
      trace_percent: z.number().min(0).max(100).default(100),
      metrics: z.boolean().default(true),
      metrics_seconds: seconds(3600).default(60),
    })
    .refine(
      ({ endpoint, token_file }) => token_file === undefined || endpoint?.startsWith('https:') === true,
      'token_file needs an endpoint that begins with https://: the token would be readable on the network',
    )
    .prefault({}),
});

type Parsed = z.infer<typeof schema>;

export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

interface SinkTlsFiles {
  readonly ca: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}
export type AuditSinkConfig = {
  readonly log: 'audit' | 'requests';
  /** Ids. Empty: all requests. */
  readonly endpoints: readonly string[];
} & (
  | {
      readonly type: 'file';
      readonly name: string;
      readonly path: string;
      readonly rotateBytes: number;
      /** 0: all. */
      readonly keep: number;
    }
  | ({ readonly type: 'syslog'; readonly name: string; readonly host: string; readonly port: number } & SinkTlsFiles)
  | ({
      readonly type: 'https';
      readonly name: string;
      readonly url: string;
      readonly tokenFile: string | undefined;
    } & SinkTlsFiles)
);

const toSink = (sink: z.infer<typeof auditSink>, folder: string): AuditSinkConfig => {
  const place = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(folder, path);
  const taken = { log: sink.log, endpoints: sink.endpoints };
  if (sink.type === 'file') {
    const { type, name, path, rotate_mib, keep } = sink;
    return { ...taken, type, name, path: resolve(folder, path), rotateBytes: rotate_mib * 1_048_576, keep };
  }
  const files = { ca: place(sink.ca), certificate: place(sink.certificate), key: place(sink.key) };
  return sink.type === 'syslog'
    ? { ...taken, type: sink.type, name: sink.name, host: sink.host, port: sink.port, ...files }
    : { ...taken, type: sink.type, name: sink.name, url: sink.url, tokenFile: place(sink.token_file), ...files };
};

export type RootWayConfig =
  | { readonly type: 'file'; readonly name: string; readonly path: string }
  | {
      readonly type: 'passphrase';
      readonly name: string;
      /** All undefined: a person is asked. */
      readonly credential: string | undefined;
      readonly file: string | undefined;
      readonly descriptor: number | undefined;
    }
  | {
      readonly type: 'pkcs11';
      readonly name: string;
      readonly module: string;
      readonly token: string;
      readonly key: string;
      readonly pinFile: string;
      readonly timeoutSeconds: number;
    };

const toRootWay = (way: z.infer<typeof rootWay>, folder: string): RootWayConfig => {
  if (way.type === 'file') return { ...way, path: resolve(folder, way.path) };
  if (way.type === 'passphrase')
    return {
      type: way.type,
      name: way.name,
      credential: way.credential,
      file: way.file === undefined ? undefined : resolve(folder, way.file),
      descriptor: way.descriptor,
    };
  const { type, name, module, token, key, pin_file, timeout_seconds } = way;
  // A bare library name is looked up by the loader.
  const place = module.includes('/') ? resolve(folder, module) : module;
  return { type, name, module: place, token, key, pinFile: resolve(folder, pin_file), timeoutSeconds: timeout_seconds };
};

/** A setting as it stands in the file, for people. */
export interface Setting {
  /** `server.port`. */
  readonly name: string;
  /** As JSON; null: not set. */
  readonly value: string | null;
  readonly origin: 'file' | 'default';
}
interface TargetBase {
  readonly name: string;
  readonly ca: string | undefined;
  readonly leastSeverity: z.infer<typeof leastSeverity>;
}
export type NotificationTargetConfig =
  | (TargetBase & {
      readonly type: 'webhook';
      readonly url: string;
      readonly secretFile: string;
      readonly allowPrivate: boolean;
    })
  | (TargetBase & {
      readonly type: 'email';
      readonly host: string;
      readonly port: number;
      readonly tls: 'starttls' | 'implicit';
      readonly from: string;
      readonly to: readonly string[];
      readonly user: string | undefined;
      readonly passwordFile: string | undefined;
    });

const toTarget = (given: z.infer<typeof notificationTarget>, folder: string): NotificationTargetConfig => {
  const place = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(folder, path);
  const { name, ca, least_severity } = given;
  const base = { name, ca: place(ca), leastSeverity: least_severity };
  if (given.type === 'webhook') {
    const { type, url, secret_file, allow_private } = given;
    return { type, ...base, url, secretFile: resolve(folder, secret_file), allowPrivate: allow_private };
  }
  const { type, host, port, tls, from, to, user, password_file } = given;
  return { type, ...base, host, port, tls, from, to, user, passwordFile: place(password_file) };
};

export interface Config {
  /** Every setting and where it comes from. None is a secret: those are in files of their own, whose paths stand here. */
  readonly settings: readonly Setting[];
  /** The file it came from; null for the embedded defaults. */
  readonly source: string | null;
  readonly server: {
    readonly host: string;
    readonly port: number;
    readonly publicNames: readonly string[];
    readonly publicUrl: string | undefined;
    /** How long health is bad before the listener closes. */
    readonly drainNoticeSeconds: number;
    readonly drainSeconds: number;
    /** Addresses or networks whose connections begin with a PROXY protocol header. */
    readonly trustedProxies: readonly string[];
  };
  readonly dataDirectory: string;
  readonly tls: {
    /** Undefined: a self-signed certificate, made at first start. */
    readonly main: TlsFiles | undefined;
    /** For callers that name one of their names. */
    readonly additional: readonly TlsFiles[];
    /** Callers are asked for a certificate, which endpoints may require. */
    readonly clientCertificates: boolean;
  };
  /** Undefined: the embedded database in the data directory. */
  readonly postgresql:
    | {
        readonly host: string;
        readonly port: number;
        readonly user: string;
        readonly database: string;
        readonly passwordFile: string | undefined;
        readonly ca: string | undefined;
        readonly readers: number;
        /** How long this node goes on using keys without hearing of changes; 0: as long as it takes. */
        readonly contactMs: number;
        /** How far a copy of the database that the database does not know may lag behind it. */
        readonly replicaLagMs: number;
      }
    | undefined;
  /** What people call this server among others. */
  readonly node: { readonly name: string };
  /** No providers: the file at `path` holds the root key itself. */
  readonly root: { readonly path: string; readonly providers: readonly RootWayConfig[] };
  readonly erasure: { readonly gatherMs: number; readonly missingSnapshots: 'wait' | 'name' };
  readonly snapshots: {
    readonly directory: string;
    readonly schedule: string | null;
    readonly keepCount: number | null;
    readonly keepDays: number | null;
    readonly undeleteDays: number;
    /** Verifier keys of other services whose snapshots may be imported. */
    readonly trustedSigners: readonly string[];
    /** Whether a restore that creates or reactivates credentials waits for a second person. */
    readonly restoreSecondPerson: boolean;
  };
  readonly tenants: { readonly retentionDays: number };
  readonly limits: {
    readonly cachedObjects: number;
    readonly instancesPerApplication: number;
    readonly queuedRequests: number;
    readonly requestLogDays: number;
    readonly requestLogRows: number;
    readonly connections: number;
  };
  readonly people: {
    /** Of users who can change anything. */
    readonly secondFactor: 'required' | 'optional';
    readonly sessionIdleMs: number;
    readonly sessionMs: number;
    readonly invitationMs: number;
  };
  /** Undefined: nobody signs in by OpenID. */
  readonly oidc:
    | {
        readonly issuer: string;
        readonly clientId: string;
        readonly clientSecretFile: string | undefined;
        readonly label: string;
        readonly scopes: string;
        readonly ca: string | undefined;
        readonly roleClaim: string | undefined;
        /** By the claim's value. */
        readonly roles: Readonly<Record<string, string>>;
        readonly secondFactor: 'claims' | 'provider' | 'ours';
        /** How long API tokens of users whose roles come from the claim live at most. */
        readonly tokenMs: number;
      }
    | undefined;
  /** `loopback`: the service's own host reads them without a token. */
  readonly metrics: { readonly loopback: boolean };
  readonly memory: { readonly lockedBytes: number | undefined; readonly allowUnlocked: boolean };
  /** Where the audit log is forwarded to. */
  readonly auditSinks: readonly AuditSinkConfig[];
  /** `expireMs`: how long a request waits for approval, and an approved one for its requester. */
  readonly approvals: { readonly expireMs: number };
  /** Where notifications are sent to, beside the inbox. */
  /** After how many days people are reminded; 0: never. */
  readonly reminders: { readonly tokenDays: number; readonly backupDays: number };
  readonly notificationTargets: readonly NotificationTargetConfig[];
  readonly externalKeyStores: { readonly probeSeconds: number };
  readonly aws: {
    readonly read: boolean;
    readonly kmsEndpoint: string | undefined;
    readonly cloudWatchEndpoint: string | undefined;
  };
  readonly diagnostics: {
    /** PEM file of authorities beside the public ones. */
    readonly trustedAuthorities: string | undefined;
    readonly cloudNetworks: readonly string[];
  };
  readonly log: {
    readonly level: 'debug' | 'info' | 'warn' | 'error';
    /** `stderr`, `stdout` or a file, which is rotated by size and by age. */
    readonly destination: string;
    readonly rotateBytes: number;
    /** Infinity: by size only. */
    readonly rotateMs: number;
    /** Files beside the current one; 0: all. */
    readonly keep: number;
  };
  /** Undefined: requests are not logged. */
  readonly accessLog: (Omit<Config['log'], 'level' | 'destination'> & { readonly path: string }) | undefined;
  /** Undefined: nothing is sent, and the library is not loaded. */
  readonly telemetry:
    | {
        readonly endpoint: string;
        readonly tokenFile: string | undefined;
        readonly ca: string | undefined;
        readonly traces: boolean;
        readonly tracePercent: number;
        readonly metrics: boolean;
        readonly metricsMs: number;
      }
    | undefined;
}

const toPostgresql = (
  {
    type,
    host,
    port,
    user,
    database,
    password_file,
    ca,
    readers,
    contact_seconds,
    replica_lag_seconds,
  }: Parsed['store'],
  folder: string,
): Config['postgresql'] => {
  if (type === 'sqlite' || host === undefined) return undefined;
  const place = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(folder, path);
  return {
    host,
    port,
    user,
    database,
    passwordFile: place(password_file),
    ca: place(ca),
    readers,
    contactMs: contact_seconds * 1000,
    replicaLagMs: replica_lag_seconds * 1000,
  };
};

const toOidc = (oidc: Parsed['oidc'], folder: string): Config['oidc'] => {
  const { issuer, client_id: clientId } = oidc;
  if (issuer === undefined || clientId === undefined) return undefined;
  const place = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(folder, path);
  return {
    issuer,
    clientId,
    clientSecretFile: place(oidc.client_secret_file),
    label: oidc.label,
    scopes: oidc.scopes,
    ca: place(oidc.ca),
    roleClaim: oidc.role_claim,
    roles: oidc.roles,
    secondFactor: oidc.second_factor,
    tokenMs: oidc.token_hours * 3_600_000,
  };
};

const toRotation = ({ rotate_mib, rotate_days, keep }: Parsed['access_log']) => ({
  rotateBytes: rotate_mib * 1_048_576,
  rotateMs: rotate_days === 0 ? Number.POSITIVE_INFINITY : rotate_days * 86_400_000,
  keep,
});

const toTelemetry = (telemetry: Parsed['telemetry'], folder: string): Config['telemetry'] => {
  const { endpoint, token_file, ca, traces, trace_percent, metrics, metrics_seconds } = telemetry;
  if (endpoint === undefined) return undefined;
  return {
    endpoint,
    tokenFile: token_file === undefined ? undefined : resolve(folder, token_file),
    ca: ca === undefined ? undefined : resolve(folder, ca),
    traces,
    tracePercent: trace_percent,
    metrics,
    metricsMs: metrics_seconds * 1000,
  };
};

const toConfig = (parsed: Parsed, source: string | null, folder: string): Omit<Config, 'settings'> => {
  const dataDirectory = resolve(folder, parsed.data.directory);
  const { certificate, key } = parsed.tls;
  const { destination } = parsed.log;
  return {
    source,
    server: {
      host: parsed.server.host,
      port: parsed.server.port,
      publicNames: parsed.server.public_names,
      publicUrl: parsed.server.public_url,
      drainNoticeSeconds: parsed.server.drain_notice_seconds,
      drainSeconds: parsed.server.drain_seconds,
      trustedProxies: parsed.server.trusted_proxies,
    },
    dataDirectory,
    tls: {
      main:
        certificate === undefined || key === undefined
          ? undefined
          : { certificate: resolve(folder, certificate), key: resolve(folder, key) },
      additional: parsed.tls.additional.map((files) => ({
        certificate: resolve(folder, files.certificate),
        key: resolve(folder, files.key),
      })),
      clientCertificates: parsed.tls.client_certificates,
    },
    postgresql: toPostgresql(parsed.store, folder),
    node: { name: parsed.node.name ?? hostname() },
    root: {
      path: parsed.root.path === undefined ? resolve(dataDirectory, 'root.key') : resolve(folder, parsed.root.path),
      providers: parsed.root.providers.map((way) => toRootWay(way, folder)),
    },
    erasure: { gatherMs: parsed.erasure.gather_ms, missingSnapshots: parsed.erasure.missing_snapshots },
    snapshots: {
      directory:
        parsed.snapshots.directory === undefined
          ? resolve(dataDirectory, 'snapshots')
          : resolve(folder, parsed.snapshots.directory),
      schedule: parsed.snapshots.schedule ?? null,
      keepCount: parsed.snapshots.keep_count ?? null,
      keepDays: parsed.snapshots.keep_days ?? null,
      undeleteDays: parsed.snapshots.undelete_days,
      trustedSigners: parsed.snapshots.trusted_signers,
      restoreSecondPerson: parsed.snapshots.restore_second_person,
    },
    tenants: { retentionDays: parsed.tenants.retention_days },
    limits: {
      cachedObjects: parsed.limits.cached_objects,
      instancesPerApplication: parsed.limits.instances_per_application,
      queuedRequests: parsed.limits.queued_requests,
      requestLogDays: parsed.limits.request_log_days,
      requestLogRows: parsed.limits.request_log_rows,
      connections: parsed.limits.connections,
    },
    people: {
      secondFactor: parsed.people.second_factor,
      sessionIdleMs: parsed.people.session_idle_minutes * 60_000,
      sessionMs: parsed.people.session_hours * 3_600_000,
      invitationMs: parsed.people.invitation_hours * 3_600_000,
    },
    oidc: toOidc(parsed.oidc, folder),
    metrics: { loopback: parsed.metrics.loopback },
    memory: { lockedBytes: parsed.memory.locked_bytes, allowUnlocked: parsed.memory.allow_unlocked },
    auditSinks: parsed.audit.sinks.map((sink) => toSink(sink, folder)),
    approvals: { expireMs: parsed.approvals.expire_hours * 3_600_000 },
    reminders: { tokenDays: parsed.notifications.token_days, backupDays: parsed.notifications.backup_days },
    notificationTargets: parsed.notifications.targets.map((target) => toTarget(target, folder)),
    externalKeyStores: { probeSeconds: parsed.external_key_stores.probe_seconds },
    aws: {
      read: parsed.aws.read,
      kmsEndpoint: parsed.aws.kms_endpoint,
      cloudWatchEndpoint: parsed.aws.cloudwatch_endpoint,
    },
    diagnostics: {
      trustedAuthorities:
        parsed.diagnostics.trusted_authorities === undefined
          ? undefined
          : resolve(folder, parsed.diagnostics.trusted_authorities),
      cloudNetworks: parsed.diagnostics.cloud_networks,
    },
    log: {
      level: parsed.log.level,
      destination: destination === 'stderr' || destination === 'stdout' ? destination : resolve(folder, destination),
      ...toRotation(parsed.log),
    },
    accessLog:
      parsed.access_log.file === undefined
        ? undefined
        : { path: resolve(folder, parsed.access_log.file), ...toRotation(parsed.access_log) },
    telemetry: toTelemetry(parsed.telemetry, folder),
  };
};

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
  const result = schema.safeParse(value);
  if (!result.success) throw complain(name, result.error);
  return { ...toConfig(result.data, source, folder), settings: listSettings(result.data, value) };
};

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const listSettings = (parsed: Parsed, given: unknown): readonly Setting[] =>
  Object.entries(parsed).flatMap(([table, fields]) => {
    const values: readonly (readonly [string, unknown])[] = Object.entries(fields);
    const own = isTable(given) && isTable(given[table]) ? given[table] : {};
    return values.map(([name, value]) => {
      return {
        name: `${table}.${name}`,
        value: value === undefined ? null : JSON.stringify(value),
        origin: Object.hasOwn(own, name) ? ('file' as const) : ('default' as const),
      };
    });
  });

export const defaultConfig = (folder: string): Config => parseConfig('', null, folder);

/** Reads a configuration file. `path` undefined: `dke.toml` in the working directory when it is there, else the defaults. */
export const loadConfig = (path: string | undefined, workingDirectory: string): Config => {
  const named = resolve(workingDirectory, path ?? 'dke.toml');
  if (path === undefined && statSync(named, { throwIfNoEntry: false }) === undefined)
    return defaultConfig(workingDirectory);
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
