// Tables of dke.toml about how the service is reached and what it allows: listener, TLS, people,
// limits, clouds.

import { hostname } from 'node:os';
import { z } from 'zod';
import { filePath, hostName, hourMs, httpsAddress, network, readTable, seconds, shortName } from './fields.ts';

const certificateFiles = z.strictObject({ certificate: filePath, key: filePath });

export const serviceTables = {
  server: z
    .strictObject({
      host: hostName.default('0.0.0.0'),
      port: z.int().min(0).max(65_535).default(443),
      public_names: z.array(hostName).min(1).max(20).default(['localhost', '127.0.0.1']),
      public_url: z
        .string()
        .regex(/^https:\/\/[A-Za-z0-9.:[\]-]+$/, 'https://HOST or https://HOST:PORT without a path')
        .optional(),
      /** How long health is bad before the listener closes. */
      drain_notice_seconds: z.int().min(0).max(600).default(0),
      /** With what a stop may take behind it, a server of the defaults ends within five seconds. */
      drain_seconds: seconds(600).default(2),
      /** Addresses or networks whose connections begin with a PROXY protocol header. */
      trusted_proxies: z.array(network).max(100).default([]),
      /** Folder of packages that the service distributes to database hosts. */
      packages_directory: filePath.optional(),
    })
    .prefault({}),
  tls: z
    .strictObject({
      certificate: filePath.optional(),
      key: filePath.optional(),
      /** For callers that name one of their names. */
      additional: z.array(certificateFiles).max(50).default([]),
      /** Callers are asked for a certificate, which endpoints may require. */
      client_certificates: z.boolean().default(false),
    })
    .refine((tls) => (tls.certificate === undefined) === (tls.key === undefined), 'certificate and key come together')
    .prefault({}),
  node: z
    .strictObject({
      /** What people call this server among others. */
      name: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/)
        .optional(),
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
      /** Whether users who can change anything must have a second factor. */
      second_factor: z.enum(['required', 'optional']).default('required'),
      session_idle_minutes: z.int().min(1).max(1440).default(60),
      session_hours: z.int().min(1).max(168).default(12),
      invitation_hours: z.int().min(1).max(720).default(72),
      /** The target of notifications whose mail server sends invitations. */
      invitation_target: shortName.optional(),
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
      /** Roles by the value of the claim. */
      roles: z.record(z.string(), z.string()).default({}),
      second_factor: z.enum(['claims', 'provider', 'ours']).default('claims'),
      /** How long API tokens of users whose roles come from the claim are valid at most. */
      token_hours: z.int().min(1).max(8760).default(24),
    })
    .refine(
      ({ issuer, client_id }) => (issuer === undefined) === (client_id === undefined),
      'issuer and client_id come together',
    )
    .prefault({}),
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
  /** How long a request waits for approval, and an approved one for its requester. */
  approvals: z.strictObject({ expire_hours: z.int().min(1).max(8760).default(72) }).prefault({}),
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
      /** A PEM file of authorities, in addition to the public ones. */
      trusted_authorities: filePath.optional(),
      cloud_networks: z.array(network).max(10_000).default([]),
    })
    .prefault({}),
};

type Given = { readonly [Name in keyof typeof serviceTables]: z.infer<(typeof serviceTables)[Name]> };

const readTls = (given: Given['tls'], folder: string) => {
  const { certificate, key, ...rest } = readTable(given, folder);
  return {
    ...rest,
    /** Undefined: a self-signed certificate, created at the first start. */
    main: certificate === undefined || key === undefined ? undefined : { certificate, key },
  };
};

const readPeople = ({
  second_factor,
  session_idle_minutes,
  session_hours,
  invitation_hours,
  invitation_target,
}: Given['people']) => ({
  invitationTarget: invitation_target,
  secondFactor: second_factor,
  sessionIdleMs: session_idle_minutes * 60_000,
  sessionMs: session_hours * hourMs,
  invitationMs: invitation_hours * hourMs,
});

const readOidc = (given: Given['oidc'], folder: string) => {
  const { issuer, clientId, tokenHours, ...rest } = readTable(given, folder);
  if (issuer === undefined || clientId === undefined) return undefined;
  return { ...rest, issuer, clientId, tokenMs: tokenHours * hourMs };
};

export const readService = (given: Given, folder: string) => ({
  server: readTable(given.server, folder),
  tls: readTls(given.tls, folder),
  node: { name: given.node.name ?? hostname() },
  tenants: readTable(given.tenants, folder),
  limits: readTable(given.limits, folder),
  people: readPeople(given.people),
  /** Undefined: sign-in by OpenID is off. */
  oidc: readOidc(given.oidc, folder),
  memory: readTable(given.memory, folder),
  approvals: { expireMs: given.approvals.expire_hours * hourMs },
  externalKeyStores: readTable(given.external_key_stores, folder),
  aws: readTable(given.aws, folder),
  diagnostics: readTable(given.diagnostics, folder),
});
