// Keys: general-purpose ones, and the keys console's view of TDE master keys. Never any key
// material.

import { z } from '@hono/zod-openapi';
import { mostTags, tagPattern } from '../../base/tags.ts';
import { waysBack } from '../../base/way-back.ts';
import { type CopyPlace, copyPlaces, unrecoverableMeans } from '../../domain/copies.ts';
import type { EndpointState } from '../../domain/endpoint.ts';
import type { KeyAlgorithm, KeyUsage } from '../../domain/key.ts';
import type { EffectiveState, KeyState } from '../../domain/lifecycle.ts';
import { keyAlgorithms } from '../tde-objects.ts';
import { approvalNeeds, dryRunQuery } from './approvals-routes.ts';
import {
  countedPageOf,
  displayName,
  exportFormat,
  exporting,
  exportTypes,
  filterMoment,
  identifier,
  integrity,
  listOf,
  moment,
  pageQuery,
  queryFlag,
  type RouteGroup,
} from './row.ts';

export const keyState = z.enum(['active', 'disabled', 'soft-deleted', 'destroyed'] satisfies KeyState[]);
export const effectiveKeyState = z.enum([
  ...keyState.options,
  'vault-disabled',
  'vault-deleted',
] satisfies EffectiveState[]);
const kind = z.enum(['general', 'master']);

export const keyShape = {
  id: identifier.openapi({ description: 'Case-sensitive; for a key store endpoint this is the external key id.' }),
  tenantId: identifier,
  vaultId: identifier,
  name: z
    .string()
    .openapi({ description: "A master key's name is its label, in hexadecimal if the label is not text." }),
  kind,
  algorithm: z.enum(keyAlgorithms satisfies readonly KeyAlgorithm[]),
  bits: z.int(),
  type: z.string().openapi({ description: 'For people: AES-256, RSA-3072, P-384, brainpoolP256r1, Ed25519.' }),
  usages: z
    .array(z.enum(['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign', 'verify', 'derive'] satisfies KeyUsage[]))
    .readonly(),
  state: keyState,
  effectiveState: effectiveKeyState.openapi({
    description:
      `The state, unless the vault stops every use of the key. vault-disabled: ${waysBack['vault-disabled'].way} ` +
      `vault-deleted: ${waysBack['vault-deleted'].way}`,
  }),
  disabledAt: moment.nullable(),
  currentVersion: z.int(),
  createdAt: moment,
  deletedAt: moment.nullable(),
  reimportedAt: moment
    .nullable()
    .openapi({ description: 'When a soft-deleted master key last came back into its vault from the sealed copy.' }),
  destroyedAt: moment.nullable().openapi({ description: 'From this time on, every use fails on every node.' }),
  unrecoverableAt: moment.nullable().openapi({
    description: `${unrecoverableMeans} Null while it knows one (\`copies\` of \`GET /api/keys/{id}/use\`).`,
  }),
  applicationId: identifier.nullable(),
  tags: z.array(z.string()).readonly().openapi({ description: 'Sorted.' }),
  firstUsedAt: moment.nullable(),
  lastUsedAt: moment.nullable().openapi({
    description: 'When it was last used, accurate to ten seconds; null: never.',
  }),
  integrity,
} as const;

export const keySchema = z.strictObject(keyShape).openapi('Key');
export type Key = z.output<typeof keySchema>;

export const keyVersionSchema = z
  .strictObject({ keyId: identifier, version: z.int(), createdAt: moment, vaultCopy: z.boolean() })
  .openapi('KeyVersion');
export type KeyVersion = z.output<typeof keyVersionSchema>;

export const keyCopiesSchema = z
  .strictObject({
    count: z.int().openapi({ description: 'How many `unrecoverableAt` waits for.' }),
    items: z
      .array(
        z.strictObject({
          place: z.enum(Object.keys(copyPlaces) as [CopyPlace, ...CopyPlace[]]),
          id: z.string().openapi({
            description: 'Of the key in the other tenant, of the snapshot, or of the file (`GET /api/copies/{id}`).',
          }),
          tenantId: identifier.nullable(),
          tenantName: z.string().nullable(),
          applicationId: identifier.nullable(),
          at: moment,
          waits: z.boolean().openapi({ description: 'true: `unrecoverableAt` stays empty while it is there.' }),
          text: z.string().openapi({ description: 'What it is, and what ends it.' }),
        }),
      )
      .readonly()
      .openapi({ description: 'Up to 100, and only those that you may see.' }),
  })
  .openapi('KeyCopies', {
    description:
      'Copies that the service knows: of the key in other tenants, and in files that left the service or are missing. While there is one that ' +
      'waits, a destroyed key can still be recovered.',
  });
export type KeyCopies = z.output<typeof keyCopiesSchema>;

export const keyUseSchema = z
  .strictObject({
    keyId: identifier,
    firstUsedAt: moment.nullable(),
    lastUsedAt: moment.nullable(),
    copies: keyCopiesSchema,
    endpoints: z
      .array(
        z.strictObject({
          id: identifier,
          name: z.string(),
          state: z.enum(['enabled', 'disabled', 'deleted'] satisfies EndpointState[]),
          lastUsedAt: moment
            .nullable()
            .openapi({ description: 'When data was last encrypted or decrypted through it.' }),
          lastRequestAt: moment.nullable().openapi({
            description: 'When it was last called with one of its current credentials, for any operation.',
          }),
        }),
      )
      .readonly()
      .openapi({
        description:
          'Endpoints of the key, including deleted ones through which it was used; most recent use first. At most 1000.',
      }),
    application: z
      .strictObject({ id: identifier, name: z.string(), groupId: identifier, groupName: z.string() })
      .nullable()
      .openapi({ description: 'Of a master key.' }),
  })
  .openapi('KeyUse');
export type KeyUse = z.output<typeof keyUseSchema>;

const tag = z.string().regex(tagPattern, 'must be 1 to 64 of a-z, 0-9 and - . _ : = /');
const tagList = z
  .array(tag)
  .max(mostTags, `must be at most ${mostTags}`)
  .readonly()
  .openapi({ example: ['env=prod', 'pci'], description: 'Words or name=value. Duplicates are ignored.' });

const newKey = z.strictObject({ name: displayName, vaultId: identifier, tags: tagList.optional() }).openapi('NewKey');
const keyChange = z.strictObject({ name: z.string().min(1).max(256), tags: tagList }).openapi('KeyChange');

const filterTime = (description: string) =>
  filterMoment.optional().openapi({ type: 'string', format: 'date-time', description });
const keyFilters = {
  vaultId: identifier.optional(),
  kind: kind.optional(),
  state: keyState.optional(),
  tag: tag.optional().openapi({ description: 'Keys with exactly this tag.' }),
  createdAfter: filterTime('Inclusive.'),
  createdBefore: filterTime('Exclusive.'),
  usedAfter: filterTime('Keys last used at this time or later.'),
  usedBefore: filterTime('Keys last used before this time. Keys that were never used are not included.'),
  neverUsed: queryFlag({ description: 'true: keys that were never used.' }),
};

const deletedKey = z
  .strictObject({
    key: keySchema,
    vaultCopyCleared: z.boolean().openapi({
      description: 'false: the key is deleted, but clearing its vault copy failed (clearing is best effort)',
    }),
    plan: approvalNeeds.optional().openapi({ description: 'With dryRun=true: nothing was changed.' }),
  })
  .openapi('DeletedKey');
export type DeletedKey = z.output<typeof deletedKey>;

export const keyRoutes = {
  create: {
    method: 'post',
    path: '/api/keys',
    needs: 'keys:manage',
    summary: 'Create a key',
    description: 'AES-256, for encrypt and decrypt; generated inside the core.',
    body: newKey,
    answer: keySchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/keys',
    needs: 'keys:read',
    summary: 'List keys',
    description:
      'Newest first; with `usedAfter` or `usedBefore`, longest unused first. Includes destroyed keys. Each filter uses an index. With several filters, ' +
      'one uses its index, and a page reads as many keys as needed to find those that match the others.',
    query: pageQuery.extend(keyFilters),
    answer: countedPageOf(keySchema),
  },
  export: {
    method: 'get',
    path: '/api/keys/export',
    needs: 'keys:read',
    tenancy: 'both',
    summary: 'Export the inventory of keys',
    description: `Keys of all kinds and states, newest first, of all tenants for those who have the permission for the platform. Times of use are marks: an operator of the database can change them. ${exporting}`,
    query: z.strictObject({ ...keyFilters, ...exportFormat }),
    answer: null,
    streams: exportTypes,
  },
  get: { method: 'get', path: '/api/keys/{id}', needs: 'keys:read', summary: 'Get a key', answer: keySchema },
  change: {
    method: 'put',
    path: '/api/keys/{id}',
    needs: 'keys:manage',
    summary: 'Change a key',
    description: 'Replaces the name and all tags. The name of a master key is its label and cannot be changed.',
    body: keyChange,
    answer: keySchema,
    changes: 'get',
  },
  versions: {
    method: 'get',
    path: '/api/keys/{id}/versions',
    needs: 'keys:read',
    summary: 'List the versions of a key',
    answer: listOf(keyVersionSchema),
  },
  use: {
    method: 'get',
    path: '/api/keys/{id}/use',
    needs: 'keys:read',
    summary: 'Show who uses a key',
    namesCopies: true,
    description:
      'Also shows when it was last used. Check this before you delete a key. Times of use are written every ten seconds.',
    answer: keyUseSchema,
  },
  enable: {
    method: 'post',
    path: '/api/keys/{id}/enable',
    needs: 'keys:manage',
    summary: 'Enable a key',
    answer: keySchema,
    changes: 'get',
  },
  disable: {
    method: 'post',
    path: '/api/keys/{id}/disable',
    needs: 'keys:manage',
    summary: 'Disable a key',
    description: 'Every use is refused until the key is enabled again.',
    answer: keySchema,
    changes: 'get',
  },
  rotate: {
    method: 'post',
    path: '/api/keys/{id}/rotate',
    needs: 'keys:manage',
    summary: 'Rotate a key',
    description:
      'Adds a version. Older versions still decrypt what they encrypted. Master keys are refused (conflict): their database rotates them.',
    answer: keyVersionSchema,
    changes: 'get',
  },
  delete: {
    method: 'delete',
    path: '/api/keys/{id}',
    needs: 'keys:delete',
    summary: 'Soft-delete a key',
    description:
      'The record stays, and the shared vault copy is cleared (best effort). A TDE master key still serves its database: ' +
      `${waysBack['deleted-master'].way} A general-purpose key can no longer be used, and under dual ` +
      `control others must approve. ${waysBack.deleted.way} ` +
      'With `dryRun=true`, `plan.impact` names its endpoints, when it was last used ' +
      '(`lastUsedAt`) and by which endpoint or application (`lastUsedBy`).',
    query: dryRunQuery,
    answer: deletedKey,
    mayWait: true,
    changes: 'get',
  },
} as const satisfies RouteGroup;
