// Handlers of recovery keys.

import { parseBase64 } from '../../../base/bytes.ts';
import { formatRecoveryKey } from '../../../base/recovery-key.ts';
import { toRfc3339 } from '../../../base/time.ts';
import { mostSnapshotsNamed, type RecoveryKey } from '../../../contract/api/recovery-keys-routes.ts';
import type { ListedRecoveryKey } from '../../../domain/snapshot.ts';
import type { Operations } from '../../../operations/index.ts';
import type { Handlers } from './handler.ts';

const represent = (key: ListedRecoveryKey): RecoveryKey => ({
  id: key.id,
  name: key.name,
  publicKey: formatRecoveryKey(parseBase64(key.publicKey) ?? Buffer.alloc(0)),
  createdAt: toRfc3339(key.createdAt),
  removedAt: key.removedAt === null ? null : toRfc3339(key.removedAt),
  tampered: key.integrity !== 'ok',
  snapshotCount: key.snapshots.length,
  snapshots: key.snapshots.slice(0, mostSnapshotsNamed),
});

export const recoveryKeysHandlers = ({ recoveryKeys }: Operations): Handlers['recoveryKeys'] => ({
  register: async ({ actor, body }) => {
    const key = await recoveryKeys.register(actor, body);
    return { id: key.id, answer: represent(key) };
  },
  list: async ({ actor }) => ({ items: (await recoveryKeys.list(actor)).map(represent) }),
  remove: async ({ actor, path, query }) => represent(await recoveryKeys.remove(actor, path.id, query.force === true)),
});
