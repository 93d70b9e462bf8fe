// The key management of a TDE application: its master keys with their history, the blast radius,
// destruction.

import { z } from '@hono/zod-openapi';
import { waysBack } from '../../base/way-back.ts';
import { approvalNeeds } from './approvals-routes.ts';
import { keyCopiesSchema, keyShape } from './keys-routes.ts';
import { identifier, moment, pageOf, pageQuery, queryFlag, type RouteGroup } from './row.ts';
import { instanceSchema } from './tde-applications-routes.ts';

export const masterKeySchema = z
  .strictObject({
    ...keyShape,
    kind: z.literal('master'),
    applicationId: identifier,
    groupId: identifier,
    handle: z.int(),
    label: z.string().openapi({ description: "Base64 of the label's bytes." }),
    origin: z
      .enum(['generated', 'imported'])
      .openapi({ description: 'imported: also keys that were unwrapped or derived' }),
    class: z.enum(['secret-key', 'private-key']),
    sensitive: z.boolean(),
    extractable: z.boolean(),
    neverDecrypts: z
      .boolean()
      .openapi({ description: 'true: it has wrapped a sensitive key, and never decrypts again.' }),
    checkValue: z.string().nullable().openapi({ description: 'Of a secret key: three bytes, hexadecimal.' }),
    publicKey: z
      .string()
      .nullable()
      .openapi({ description: 'Of a private key: its public half, SubjectPublicKeyInfo as PEM.' }),
    sealedCopy: z.boolean(),
    vaultCopy: z.boolean(),
    newest: z.boolean().openapi({
      description: "true: the newest of the application's secret keys that are not destroyed.",
    }),
  })
  .openapi('MasterKey');
export type MasterKey = z.output<typeof masterKeySchema>;

export const blastRadiusSchema = z
  .strictObject({
    keyId: identifier,
    applicationId: identifier,
    applicationName: z.string(),
    instances: z.array(instanceSchema).readonly(),
    groupApplications: z
      .array(z.strictObject({ id: identifier, name: z.string(), instances: z.array(instanceSchema).readonly() }))
      .readonly()
      .openapi({ description: 'Other applications of the group: they can find and use the key too.' }),
    appIds: z.array(z.string()).readonly(),
    hosts: z.array(z.string()).readonly(),
    lastUsedAt: moment.nullable(),
    copies: keyCopiesSchema,
  })
  .openapi('BlastRadius');
export type BlastRadius = z.output<typeof blastRadiusSchema>;

const destroyQuery = z.strictObject({
  dryRun: queryFlag({ default: false, description: 'Shows the blast radius and changes nothing.' }),
});

const destroyMasterKey = z
  .strictObject({
    confirm: z
      .string()
      .optional()
      .openapi({ description: 'The exact name of the master key (its label). Not needed with dryRun=true.' }),
  })
  .openapi('DestroyMasterKey');

const destroyedMasterKey = z
  .strictObject({
    dryRun: z.boolean(),
    key: masterKeySchema,
    blastRadius: blastRadiusSchema,
    plan: approvalNeeds.optional().openapi({ description: 'With dryRun=true.' }),
  })
  .openapi('DestroyedMasterKey');
export type DestroyedMasterKey = z.output<typeof destroyedMasterKey>;

export const masterKeyRoutes = {
  list: {
    method: 'get',
    path: '/api/tde/applications/{applicationId}/master-keys',
    needs: 'master-keys:read',
    scope: { kind: 'application', parameter: 'applicationId' },
    summary: "List an application's master keys",
    description: 'Newest first, including destroyed keys.',
    query: pageQuery,
    answer: pageOf(masterKeySchema),
  },
  get: {
    method: 'get',
    path: '/api/tde/applications/{applicationId}/master-keys/{keyId}',
    needs: 'master-keys:read',
    scope: { kind: 'application', parameter: 'applicationId' },
    summary: 'Get a master key',
    answer: masterKeySchema,
  },
  blastRadius: {
    method: 'get',
    path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/blast-radius',
    needs: 'master-keys:read',
    scope: { kind: 'application', parameter: 'applicationId' },
    summary: 'Show who would lose access if a master key were destroyed',
    namesCopies: true,
    answer: blastRadiusSchema,
  },
  allowDecryption: {
    method: 'post',
    path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/allow-decryption',
    needs: 'keys:manage',
    scope: { kind: 'application', parameter: 'applicationId' },
    summary: 'Repair a master key that encrypts but cannot decrypt',
    description:
      'For master keys of Oracle Database whose template did not permit decryption: the key decrypts from now on. ' +
      'A key that has wrapped a sensitive key cannot be repaired (`conflict`). Repeating it changes nothing.',
    answer: masterKeySchema,
  },
  destroy: {
    method: 'post',
    path: '/api/tde/applications/{applicationId}/master-keys/{keyId}/destroy',
    needs: 'master-keys:destroy',
    scope: { kind: 'application', parameter: 'applicationId' },
    summary: 'Destroy a master key',
    namesCopies: true,
    description:
      'Both copies are wiped, every use fails from now on, and data encrypted under the key becomes unreadable. ' +
      `${waysBack.destroyed.way} ` +
      '`confirm` must be the name of the key.',
    query: destroyQuery,
    body: destroyMasterKey,
    answer: destroyedMasterKey,
    mayWait: true,
  },
} as const satisfies RouteGroup;
