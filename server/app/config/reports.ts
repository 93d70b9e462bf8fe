// Tables of dke.toml about what the service reports: sinks, notifications, logs, metrics and
// telemetry.

import { z } from 'zod';
import {
  filePath,
  filePathOr,
  hostName,
  httpsAddress,
  mebibyte,
  namedList,
  port,
  readTable,
  seconds,
  shortName,
  type Table,
} from './fields.ts';

const sinkTls = { ca: filePath.optional(), certificate: filePath.optional(), key: filePath.optional() };
const sinkLog = {
  log: z.enum(['audit', 'requests']).default('audit'),
  /** Empty: the requests of all endpoints. */
  endpoints: z.array(z.uuid('the id of an endpoint, from dke endpoint list')).max(1000).default([]),
};
const auditSink = z.discriminatedUnion('type', [
  z.strictObject({
    name: shortName,
    type: z.literal('file'),
    ...sinkLog,
    path: filePath,
    rotate_mib: z.int().min(1).max(100_000).default(100),
    /** 0: all. */
    keep: z.int().min(0).max(100_000).default(0),
  }),
  z.strictObject({
    name: shortName,
    type: z.literal('syslog'),
    ...sinkLog,
    host: hostName,
    port: port.default(6514),
    ...sinkTls,
  }),
  z.strictObject({
    name: shortName,
    type: z.literal('https'),
    ...sinkLog,
    url: httpsAddress,
    token_file: filePath.optional(),
    ...sinkTls,
  }),
]);

const anyTarget = {
  ca: filePath.optional(),
  min_severity: z.enum(['info', 'low', 'medium', 'high', 'critical']).default('low'),
};
const notificationTarget = z.discriminatedUnion('type', [
  z.strictObject({
    name: shortName,
    type: z.literal('webhook'),
    url: httpsAddress,
    secret_file: filePath,
    allow_private: z.boolean().default(false),
    ...anyTarget,
  }),
  z
    .strictObject({
      name: shortName,
      type: z.literal('email'),
      host: hostName,
      port: port.default(587),
      tls: z.enum(['starttls', 'implicit']).default('starttls'),
      from: z.email(),
      to: z.array(z.email()).min(1).max(50),
      user: z.string().min(1).max(256).optional(),
      password_file: filePath.optional(),
      ...anyTarget,
    })
    .refine(
      (mail) => (mail.user === undefined) === (mail.password_file === undefined),
      'user and password_file come together',
    ),
]);

const rotation = {
  rotate_mib: z.int().min(1).max(1_000_000).default(100),
  /** 0: by size only. */
  rotate_days: z.int().min(0).max(3650).default(7),
  /** Files in addition to the current one; 0: all. */
  keep: z.int().min(0).max(100_000).default(10),
};

export const observationTables = {
  metrics: z
    .strictObject({
      /** Whether the service's own host reads them without a token. */
      loopback: z.boolean().default(true),
    })
    .prefault({}),
  audit: z
    .strictObject({
      sinks: namedList(auditSink, 20)
        .refine(
          (sinks) => sinks.every(({ log, endpoints }) => log === 'requests' || endpoints.length === 0),
          'endpoints filter only a sink with log = "requests"',
        )
        .default([]),
    })
    .prefault({}),
  notifications: z
    .strictObject({
      /** After how many days people are reminded; 0: never. */
      token_days: z.int().min(0).max(3650).default(365),
      key_days: z.int().min(0).max(3650).default(365),
      backup_days: z.int().min(0).max(3650).default(7),
      targets: namedList(notificationTarget, 20).default([]),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
      destination: filePathOr((text) => text === 'stderr' || text === 'stdout').prefault('stderr'),
      ...rotation,
    })
    .prefault({}),
  access_log: z.strictObject({ file: filePath.optional(), ...rotation }).prefault({}),
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
};

type Given = { readonly [Name in keyof typeof observationTables]: z.infer<(typeof observationTables)[Name]> };

const readSink = (sink: Table<z.infer<typeof auditSink>>) => {
  if (sink.type !== 'file') return sink;
  const { rotateMib, ...rest } = sink;
  return { ...rest, rotateBytes: rotateMib * mebibyte };
};

const readRotation = ({ rotate_mib, rotate_days, keep }: Given['access_log']) => ({
  rotateBytes: rotate_mib * mebibyte,
  rotateMs: rotate_days === 0 ? Number.POSITIVE_INFINITY : rotate_days * 86_400_000,
  keep,
});

const readTelemetry = (given: Given['telemetry'], folder: string) => {
  const { endpoint, metricsSeconds, ...rest } = readTable(given, folder);
  return endpoint === undefined ? undefined : { ...rest, endpoint, metricsMs: metricsSeconds * 1000 };
};

export const readObservation = (given: Given, folder: string) => {
  const { targets, ...reminders } = readTable(given.notifications, folder);
  const { level, destination } = readTable(given.log, folder);
  const { file } = readTable(given.access_log, folder);
  return {
    metrics: given.metrics,
    auditSinks: readTable(given.audit, folder).sinks.map(readSink),
    reminders,
    /** Where notifications are sent, in addition to the inbox. */
    notificationTargets: targets,
    log: { level, destination, ...readRotation(given.log) },
    /** Undefined: requests are not logged. */
    accessLog: file === undefined ? undefined : { path: file, ...readRotation(given.access_log) },
    /** Undefined: nothing is sent, and the library is not loaded. */
    telemetry: readTelemetry(given.telemetry, folder),
  };
};
