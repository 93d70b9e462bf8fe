// Handlers of external key stores.

import type { Operations } from '../../../operations/index.ts';
import { representExternalKeyStore, representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const externalKeyStoresHandlers = ({ externalKeyStores }: Operations): Handlers['externalKeyStores'] => ({
  register: async ({ actor, body }) => {
    const store = await externalKeyStores.register(actor, body);
    return { id: store.id, answer: representExternalKeyStore(store) };
  },
  list: async ({ actor, query }) =>
    representPage(await externalKeyStores.list(actor, query), representExternalKeyStore),
  get: async ({ actor, path }) => representExternalKeyStore(await externalKeyStores.get(actor, path.id)),
  probe: async ({ actor, path }) => representExternalKeyStore(await externalKeyStores.probe(actor, path.id)),
  remove: async ({ actor, path }) => representExternalKeyStore(await externalKeyStores.remove(actor, path.id)),
});
