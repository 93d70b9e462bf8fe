// Handlers of master keys of databases.

import type { Operations } from '../../../operations/index.ts';
import { ValidationError } from '../api-problem.ts';
import { representBlastRadius, representMasterKey, representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const masterKeysHandlers = ({ masterKeys, keys, preconditions }: Operations): Handlers['masterKeys'] => ({
  list: async ({ actor, path, query }) =>
    representPage(await masterKeys.list(actor, path.applicationId, query), representMasterKey),
  get: async ({ actor, path }) => representMasterKey(await masterKeys.get(actor, path.applicationId, path.keyId)),
  allowDecryption: async ({ actor, path }) =>
    representMasterKey(await masterKeys.allowDecryption(actor, path.applicationId, path.keyId)),
  blastRadius: async ({ actor, path }) =>
    representBlastRadius(await masterKeys.blastRadius(actor, path.applicationId, path.keyId)),
  destroy: async ({ actor, path, query, body }) => {
    const key = await masterKeys.get(actor, path.applicationId, path.keyId);
    if (query.dryRun === true) {
      const blastRadius = await masterKeys.blastRadius(actor, path.applicationId, path.keyId);
      const plan = await masterKeys.destroyNeeds(actor, path.applicationId, path.keyId);
      return { dryRun: true, key: representMasterKey(key), blastRadius: representBlastRadius(blastRadius), plan };
    }
    const requireConfirmed = (name: string): void => {
      if (body.confirm !== name)
        throw new ValidationError([
          { path: 'confirm', message: body.confirm === undefined ? 'is missing' : "is not the master key's name" },
        ]);
    };
    requireConfirmed(key.name);
    // The database may give the key another name in the meantime: then it is not the one that was
    // confirmed.
    const check = async (): Promise<void> => requireConfirmed((await keys.get(actor, path.keyId)).name);
    const destroyed = await preconditions.under(check, () => masterKeys.destroy(actor, path.applicationId, path.keyId));
    return {
      dryRun: false,
      key: representMasterKey(destroyed.key),
      blastRadius: representBlastRadius(destroyed.blastRadius),
    };
  },
});
