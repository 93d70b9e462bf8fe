// TDE applications: what a database instance is bound to; their credentials (access_guid) and the
// instances that use them.

import { z } from '@hono/zod-openapi';
import { compatibilitySwitches } from '../../base/compatibility-switches.ts';
import { mostCallers } from '../../base/networks.ts';
import type { ApplicationState } from '../../domain/tde.ts';
import { approvalNeeds } from './approvals-routes.ts';
import {
  countedPageOf,
  displayName,
  identifier,
  integrity,
  listOf,
  moment,
  newName,
  pageQuery,
  type RouteGroup,
} from './row.ts';

const switches = z.array(z.enum(compatibilitySwitches)).max(compatibilitySwitches.length).readonly();

const networks = z
  .array(z.string().max(64))
  .max(mostCallers)
  .readonly()
  .openapi({ description: 'Addresses and networks (CIDR). Empty: any address.', example: ['192.0.2.0/24'] });

const callerCertificate = z.strictObject({
  pem: z.string(),
  fingerprint: z.string().openapi({ description: 'SHA-256.' }),
  subject: z.string(),
  expiresAt: moment,
});
export type CallerCertificate = z.output<typeof callerCertificate>;

export const applicationSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    groupId: identifier,
    name: z.string(),
    appId: z.string().openapi({ description: 'app_id, the last segment of server_url; instances can use others' }),
    tokenLabel: z.string().openapi({
      description: 'The label of its PKCS#11 token: the name with which it was registered. It never changes.',
    }),
    state: z.enum(['enabled', 'disabled'] satisfies ApplicationState[]),
    compatibility: switches.openapi({
      description: 'Weaker cryptography that it is allowed to use: docs/compatibility.md.',
    }),
    callers: z
      .strictObject({
        networks,
        certificates: z
          .array(callerCertificate)
          .readonly()
          .openapi({ description: 'A caller must present one of these. Empty: no client certificate is required.' }),
      })
      .openapi({ description: 'Allowed callers: docs/application-callers.md.' }),
    createdAt: moment,
    integrity,
  })
  .openapi('TdeApplication');
export type Application = z.output<typeof applicationSchema>;

export const accessGuidSchema = z
  .strictObject({
    id: identifier.openapi({ description: 'Identifies the credential; it is not the credential.' }),
    applicationId: identifier,
    createdAt: moment,
    removedAt: moment.nullable(),
    lastUsedAt: moment.nullable(),
    integrity,
  })
  .openapi('AccessGuid');
export type AccessGuid = z.output<typeof accessGuidSchema>;

export const instanceSchema = z
  .strictObject({
    id: identifier,
    applicationId: identifier,
    accessGuidId: identifier,
    appId: z.string(),
    host: z.string(),
    process: z.string(),
    osUser: z.string(),
    libraryVersion: z.string(),
    agentVersion: z.string(),
    pid: z.int(),
    firstUsedAt: moment,
    lastUsedAt: moment,
    uses: z.int(),
  })
  .openapi('TdeInstance');
export type Instance = z.output<typeof instanceSchema>;

/** What a database host needs; the member names are those of pkcs11.toml where it has them. */
export const configBundleSchema = z
  .strictObject({
    server_url: z.string().openapi({ description: 'Contains the access_guid: as secret as access_token.' }),
    access_token: z.string(),
    pkcs11_toml: z.string().openapi({ description: 'The whole file.' }),
    ca_pem: z.string().nullable().openapi({
      description:
        'The certificate that the database host has to trust, PEM, for `ca_file`. Null: that of a public authority, or one that you install separately.',
    }),
    mode: z.literal('600').openapi({ description: 'Mode of the file; owner: the database OS user.' }),
    library: z.string().openapi({ description: 'Where Oracle searches for the library.' }),
  })
  .openapi('ConfigBundle');

const issuedShape = {
  record: accessGuidSchema,
  accessGuid: z.string().openapi({ description: 'The bearer credential. Shown only once.' }),
  serverUrl: z.string(),
  config: configBundleSchema,
} as const;
export const issuedAccessGuidSchema = z.strictObject(issuedShape).openapi('IssuedAccessGuid');
export type IssuedAccessGuid = z.output<typeof issuedAccessGuidSchema>;
export const registeredApplicationSchema = z
  .strictObject({ application: applicationSchema, ...issuedShape })
  .openapi('RegisteredApplication');
export type RegisteredApplication = z.output<typeof registeredApplicationSchema>;

const named = z.strictObject({ id: identifier, name: z.string() });
const neighbour = z.strictObject({ id: identifier, name: z.string(), keys: z.int() });
export const applicationMoveSchema = z
  .strictObject({
    from: named,
    to: named,
    keys: z.int().openapi({ description: 'Its own keys, which move with it.' }),
    objects: z.int().openapi({ description: 'Its other token objects, which move with it.' }),
    conflictingLabels: z.array(z.string()).readonly().openapi({
      description: 'Labels of its keys that already exist in the new group. If there are any, the move is refused.',
    }),
    keysLost: z
      .int()
      .openapi({ description: 'Keys of other applications in the old group that it can no longer use.' }),
    leaves: z
      .array(neighbour.extend({ instances: z.array(instanceSchema).readonly() }))
      .readonly()
      .openapi({ description: 'Applications of the old group that can no longer use its keys.' }),
    joins: z
      .array(neighbour)
      .readonly()
      .openapi({ description: 'Applications of the new group, which can then use its keys.' }),
    instances: z.array(instanceSchema).readonly(),
  })
  .openapi('ApplicationMove');
export type ApplicationMove = z.output<typeof applicationMoveSchema>;

const moveQuery = z.strictObject({
  dryRun: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .openapi({ type: 'boolean', default: false, description: 'Shows the consequences and changes nothing.' }),
});
const moveBody = z
  .strictObject({
    groupId: identifier,
    confirm: z
      .string()
      .optional()
      .openapi({ description: 'The exact name of the application. Not needed with dryRun=true.' }),
  })
  .openapi('MoveTdeApplication');
const movedApplication = z
  .strictObject({
    dryRun: z.boolean(),
    application: applicationSchema,
    move: applicationMoveSchema,
    plan: approvalNeeds.optional(),
  })
  .openapi('MovedTdeApplication');
export type MovedApplication = z.output<typeof movedApplication>;

const newApplication = z
  .strictObject({
    name: displayName,
    groupId: identifier,
    appId: z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
        'must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit',
      )
      .optional(),
  })
  .openapi('NewTdeApplication');

export const applicationRoutes = {
  register: {
    method: 'post',
    path: '/api/tde/applications',
    needs: 'applications:manage',
    summary: 'Register a TDE application',
    description: 'The answer shows the access_guid, only once, and the configuration bundle for the database host.',
    body: newApplication,
    answer: registeredApplicationSchema,
    creates: true,
    showsSecret: ['accessGuid', 'config.pkcs11_toml'],
  },
  list: {
    method: 'get',
    path: '/api/tde/applications',
    needs: 'applications:read',
    summary: 'List TDE applications',
    query: pageQuery.extend({ groupId: identifier.optional() }),
    answer: countedPageOf(applicationSchema),
  },
  get: {
    method: 'get',
    path: '/api/tde/applications/{id}',
    needs: 'applications:read',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Get a TDE application',
    answer: applicationSchema,
  },
  enable: {
    method: 'post',
    path: '/api/tde/applications/{id}/enable',
    needs: 'applications:manage',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Enable a TDE application',
    answer: applicationSchema,
    changes: 'get',
  },
  disable: {
    method: 'post',
    path: '/api/tde/applications/{id}/disable',
    needs: 'applications:manage',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Disable a TDE application',
    description: 'Every request with one of its access_guids is refused until it is enabled again.',
    answer: applicationSchema,
    changes: 'get',
  },
  rename: {
    method: 'put',
    path: '/api/tde/applications/{id}/name',
    needs: 'applications:manage',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Rename a TDE application',
    description:
      'Its app_id, its credentials and the label of its token stay: databases notice nothing. The rule for a new name applies.',
    body: newName,
    answer: applicationSchema,
    changes: 'get',
  },
  setCompatibility: {
    method: 'put',
    path: '/api/tde/applications/{id}/compatibility',
    needs: 'applications:manage',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Set the compatibility switches of a TDE application',
    description:
      'Turns the named switches on and all others off. Each one allows weaker cryptography for programs that depend on it.',
    body: z.strictObject({ switches }).openapi('TdeApplicationCompatibility'),
    answer: applicationSchema,
    changes: 'get',
  },
  setCallers: {
    method: 'put',
    path: '/api/tde/applications/{id}/callers',
    needs: 'applications:manage',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Set the allowed callers of a TDE application',
    description:
      'Replaces both lists. Applies from the next request on, also on open connections. `certificates` needs ' +
      '`tls.client_certificates = true` in dke.toml.',
    body: z
      .strictObject({
        networks,
        certificates: z
          .array(z.string().max(16_384))
          .max(mostCallers)
          .readonly()
          .openapi({ description: 'PEM, one certificate in each item: those of the clients, not of their issuer.' }),
      })
      .openapi('TdeApplicationCallers'),
    answer: applicationSchema,
    changes: 'get',
  },
  move: {
    method: 'post',
    path: '/api/tde/applications/{id}/move',
    needs: 'applications:manage',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Move a TDE application to another group',
    description:
      'Its keys move with it. From the next request on, it cannot use the keys of its old group, even in open sessions, ' +
      'and the applications of that group cannot use its keys. `confirm` must be the name of the application.',
    query: moveQuery,
    body: moveBody,
    answer: movedApplication,
    mayWait: true,
    changes: 'get',
  },
  rotateAccessGuid: {
    method: 'post',
    path: '/api/tde/applications/{id}/access-guids',
    needs: 'applications:credentials',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Issue a second access_guid',
    description: 'Both are valid until you remove the old one. With two valid ones, a third is refused (conflict).',
    answer: issuedAccessGuidSchema,
    creates: true,
    showsSecret: ['accessGuid', 'config.pkcs11_toml'],
  },
  accessGuids: {
    method: 'get',
    path: '/api/tde/applications/{id}/access-guids',
    needs: 'applications:read',
    scope: { kind: 'application', parameter: 'id' },
    summary: "List an application's access_guids",
    description: 'Valid and removed ones, newest first; never their values.',
    answer: listOf(accessGuidSchema),
  },
  removeAccessGuid: {
    method: 'delete',
    path: '/api/tde/applications/{id}/access-guids/{accessGuidId}',
    needs: 'applications:credentials',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'Remove an access_guid',
    description: 'The last valid one cannot be removed: disable the application instead.',
    answer: accessGuidSchema,
  },
  instances: {
    method: 'get',
    path: '/api/tde/applications/{id}/instances',
    needs: 'applications:read',
    scope: { kind: 'application', parameter: 'id' },
    summary: 'List the instances of an application',
    description: 'Most recent use first.',
    answer: listOf(instanceSchema),
  },
} as const satisfies RouteGroup;
