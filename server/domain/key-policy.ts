// May this key be used for this, now? The single answer, for external key stores and for TDE. Pure.
// A front or an operation gives a refusal its own words; what is not about the key (who calls,
// rules of an endpoint) is decided there.

import { isUnreadableMasterKey } from '../base/master-keys.ts';
import type { Key, KeyUsage } from './key.ts';
import type { TokenObject } from './tde.ts';
import { type TokenMechanism, takesKey } from './token-mechanisms.ts';
import type { Vault } from './vault.ts';

export type StateRefusal = 'key-disabled' | 'key-not-found' | 'key-destroyed';
type KeyFacts = Pick<Key, 'kind' | 'state' | 'disabledAt'>;

/**
 * A soft-deleted master key stays usable from its sealed copy; a soft-deleted general key cannot be
 * used.
 */
export const refusalOfState = (key: KeyFacts): StateRefusal | null => {
  if (key.state === 'destroyed') return 'key-destroyed';
  if (key.state === 'soft-deleted' && key.kind === 'general') return 'key-not-found';
  if (key.state === 'disabled' || key.disabledAt !== null) return 'key-disabled';
  return null;
};

/** A vault that was changed from outside is closed: its state is not known. */
export const isVaultOpen = (vault: Pick<Vault, 'state' | 'integrity'> | undefined): boolean =>
  vault?.state === 'enabled' && vault.integrity === 'ok';

/** What is done with a token key: what it is for, or that it leaves, unencrypted or wrapped. */
export type TokenKeyUse = KeyUsage | 'export';
export type TokenKeyRefusal =
  | 'no-key'
  | 'not-extractable'
  | 'usage'
  | 'key-type'
  | 'mechanism'
  | 'wraps-sensitive-keys'
  | 'unreadable'
  | StateRefusal
  | 'vault';

interface TokenKeyFacts {
  readonly object: Pick<
    TokenObject,
    'class' | 'algorithm' | 'label' | 'extractable' | 'usages' | 'wrappedSensitive' | 'rules'
  >;
  readonly key: KeyFacts | undefined;
  readonly vault: Pick<Vault, 'state' | 'integrity'> | undefined;
}

/**
 * The caller's mistakes come before the states: they do not depend on the time, and are not
 * recorded. `by`: the mechanism; null where no key is opened for it, or where the key itself
 * leaves. Of a public key there is no secret whose state counts; the service only wraps with it.
 */
export const refusalOfTokenKey = (
  { object, key, vault }: TokenKeyFacts,
  use: TokenKeyUse,
  by: TokenMechanism | null,
): TokenKeyRefusal | null => {
  const isPublic = object.class === 'public-key' && use === 'wrap' && by !== null;
  if (key === undefined && !isPublic) return 'no-key';
  if (use === 'export') {
    if (!object.extractable) return 'not-extractable';
  } else {
    if (by !== null && !takesKey(by, use, object)) return 'key-type';
    if (!object.usages.includes(use)) return 'usage';
    if (by !== null && object.rules?.mechanisms?.includes(by) === false) return 'mechanism';
  }
  if (use === 'decrypt' && object.wrappedSensitive) return 'wraps-sensitive-keys';
  if (use === 'encrypt' && isUnreadableMasterKey(object)) return 'unreadable';
  if (key === undefined) return null;
  return refusalOfState(key) ?? (isVaultOpen(vault) ? null : 'vault');
};

/** Whether an endpoint can have this key. The cloud never sees a deleted one, of either kind. */
export const isExternalKey = ({ state }: Pick<Key, 'state'>): boolean =>
  state !== 'soft-deleted' && state !== 'destroyed';

export type ExternalKeyRefusal = 'key-disabled' | 'not-aes-256' | 'usage';

/**
 * Why the cloud cannot use a key that `isExternalKey`; null: it can. The state is checked first, so
 * that the cloud shows a disabled key as disabled.
 */
export const refusalOfExternalKey = (
  key: KeyFacts & Pick<Key, 'algorithm' | 'bits' | 'usages'>,
  use: 'encrypt' | 'decrypt',
): ExternalKeyRefusal | null => {
  if (refusalOfState(key) !== null) return 'key-disabled';
  if (key.algorithm !== 'aes' || key.bits !== 256) return 'not-aes-256';
  return key.usages.includes(use) ? null : 'usage';
};
