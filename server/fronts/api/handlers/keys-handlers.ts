// Handlers of keys.

import type { Operations } from '../../../operations/index.ts';
import { exportKeys } from '../export.ts';
import { representKey, representKeyUse, representKeyVersion, representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const keysHandlers = ({ keys }: Operations): Handlers['keys'] => ({
  create: async ({ actor, body }) => {
    const key = await keys.create(actor, body);
    return { id: key.id, answer: representKey(key) };
  },
  export: async ({ actor, query: { format = 'ndjson', ...filter } }) =>
    exportKeys(await keys.export(actor, filter, format), format),
  list: async ({ actor, query }) => representPage(await keys.list(actor, query), representKey),
  get: async ({ actor, path }) => representKey(await keys.get(actor, path.id)),
  change: async ({ actor, path, body }) => representKey(await keys.change(actor, path.id, body)),
  versions: async ({ actor, path }) => ({
    items: (await keys.versions(actor, path.id)).map(representKeyVersion),
  }),
  use: async ({ actor, path }) => representKeyUse(await keys.use(actor, path.id)),
  enable: async ({ actor, path }) => representKey(await keys.enable(actor, path.id)),
  disable: async ({ actor, path }) => representKey(await keys.disable(actor, path.id)),
  rotate: async ({ actor, path }) => representKeyVersion(await keys.rotate(actor, path.id)),
  delete: async ({ actor, path, query }) => {
    if (query.dryRun === true) {
      const plan = await keys.planSoftDelete(actor, path.id);
      return { key: representKey(await keys.get(actor, path.id)), vaultCopyCleared: false, plan };
    }
    const { key, vaultCopyCleared } = await keys.softDelete(actor, path.id);
    return { key: representKey(key), vaultCopyCleared };
  },
});
