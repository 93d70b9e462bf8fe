// Recovery keys: what snapshots are sealed to. Only public halves; the private one is made and kept
// elsewhere (dke recovery-key create).

import { z } from '@hono/zod-openapi';
import { displayName, listOf, moment, queryFlag, type RouteGroup } from './row.ts';

/** An answer names so many snapshots that a key opens, at most, and says how many there are. */
export const mostSnapshotsNamed = 100;

export const recoveryKeySchema = z
  .strictObject({
    id: z.string().openapi({ example: '3f0c9a51d2b7e864' }),
    name: z.string(),
    publicKey: z.string().openapi({ description: 'dke-recovery-key+ID+BASE64' }),
    createdAt: moment,
    removedAt: moment.nullable().openapi({ description: 'New snapshots are not sealed to it; older ones still open.' }),
    tampered: z
      .boolean()
      .openapi({ description: 'The stored row was changed from outside. No snapshots are created.' }),
    snapshotCount: z.int().openapi({
      description: 'Snapshots that open with it, also after it was removed. Delete them if it must not open them.',
    }),
    snapshots: z
      .array(z.string())
      .readonly()
      .openapi({ description: `Their ids, ${mostSnapshotsNamed} at most.` }),
  })
  .openapi('RecoveryKey');
export type RecoveryKey = z.output<typeof recoveryKeySchema>;

export const recoveryKeyRoutes = {
  register: {
    method: 'post',
    path: '/api/recovery-keys',
    needs: 'recovery-keys:manage',
    tenancy: 'platform',
    summary: 'Register a recovery key',
    description: 'From now on, snapshots are sealed to every registered key. Each of these keys can open them.',
    body: z.strictObject({ name: displayName, publicKey: z.string().max(200) }).openapi('NewRecoveryKey'),
    answer: recoveryKeySchema,
    creates: true,
    mayWait: true,
  },
  list: {
    method: 'get',
    path: '/api/recovery-keys',
    needs: 'snapshots:read',
    tenancy: 'platform',
    summary: 'List recovery keys',
    answer: listOf(recoveryKeySchema),
  },
  remove: {
    method: 'delete',
    path: '/api/recovery-keys/{id}',
    needs: 'recovery-keys:manage',
    tenancy: 'platform',
    summary: 'Remove a recovery key',
    description:
      'Snapshots that were sealed to it still open with it; the answer names them. Keep its file as long as those snapshots. The last key can be removed only with `force` ' +
      'while snapshots are scheduled.',
    query: z.strictObject({
      force: queryFlag({
        default: false,
        description: 'true: remove even the last key while snapshots are scheduled.',
      }),
    }),
    answer: recoveryKeySchema,
  },
} as const satisfies RouteGroup;
