// Handlers of the root key and of the quarantine.

import { toRfc3339 } from '../../../base/time.ts';
import type { Root } from '../../../contract/api/root-routes.ts';
import type { Operations, RootView } from '../../../operations/index.ts';
import type { Handlers } from './handler.ts';

const representRoot = ({ providers, backup, ...rest }: RootView): Root => ({
  ...rest,
  backup: backup === null ? null : { epoch: backup.epoch, at: toRfc3339(backup.at) },
  providers: providers.map(({ createdAt, ...way }) => ({
    ...way,
    createdAt: createdAt === null ? null : toRfc3339(createdAt),
  })),
});

export const rootHandlers = ({ root }: Operations): Handlers['root'] => ({
  get: async ({ actor }) => representRoot(await root.get(actor)),
  rotate: async ({ actor, body }) => representRoot(await root.rotate(actor, body.tenantId)),
  releaseCopy: async ({ actor, body }) => representRoot(await root.releaseCopy(actor, body.name)),
});

export const quarantineHandlers = ({ quarantine }: Operations): Handlers['quarantine'] => ({
  get: ({ actor }) => quarantine.get(actor),
  confirm: ({ actor, body }) => quarantine.confirm(actor, body.code),
});
