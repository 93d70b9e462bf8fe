// Keys that a client sends are sealed to the recipient of their tenant (HPKE, RFC 9180), and are
// opened inside the addon: their values are never in this process's JavaScript. The recipient ends
// with the KEK that it follows from, so that no later copy of the store opens a recorded message.

import { ServiceError } from '../../base/service-error.ts';
import type { KeyRef, UnwrappedKind } from '../../ports/crypto-core.ts';
import type { SealedKey } from '../../ports/key-ring.ts';
import type { Ports } from '../../ports/ports.ts';
import { inTurn } from './slow-work.ts';
import type { TdeCaller } from './tde-operations.ts';

/**
 * The key, which the caller releases; null when its recipient no longer exists.
 * 'invalid-ciphertext' when it does not open.
 */
export const openSealed = async (
  { ring, store }: Pick<Ports, 'ring' | 'store'>,
  caller: TdeCaller,
  key: SealedKey,
  kind: UnwrappedKind,
): Promise<KeyRef | null> => {
  const { tenantId } = caller.application;
  const open = (): Promise<KeyRef | null> => ring.openSealed(tenantId, key, kind);
  // A private key's numbers are checked.
  const inItsTurn = (): Promise<KeyRef | null> => (kind === 'private' ? inTurn('computation', caller, open) : open());
  const opened = await inItsTurn();
  if (opened !== null) return opened;
  // Another node may have made this recipient a moment ago.
  await ring.refresh(store.read);
  return inItsTurn();
};

export const recipientChanged = (): ServiceError =>
  new ServiceError('conflict', 'the key was sealed to a public key that is no longer in use', {
    reason: 'recipient-changed',
    hint: 'request the recipient again, seal the key to it, and repeat the request',
  });
