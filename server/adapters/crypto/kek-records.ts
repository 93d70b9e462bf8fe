// The stored records of tenants' key encryption keys (KEKs), which are sealed under a root key: a
// record's `epoch` is the root key's, its `version` the KEK's own.

import { CoreError } from '../../../addon/core.ts';
import { canonicalJson } from '../../base/bytes.ts';
import { idBytes } from '../../base/ids.ts';
import type { CryptoCore, KekRef, RecordContext } from '../../ports/crypto-core.ts';
import { RootKeyError } from '../../ports/key-ring.ts';
import type { RootKey, RootProvider } from '../../ports/root-provider.ts';
import type { StoredKek } from '../../ports/store.ts';

export interface OpenKek {
  readonly epoch: number;
  readonly key: KekRef;
  /** The sealed record, as the store has it. */
  readonly record: Buffer;
}

const kekContext = (tenantId: string, kekEpoch: number, rootEpoch: number): RecordContext => ({
  tenant: idBytes(tenantId),
  object: idBytes(tenantId),
  version: kekEpoch,
  epoch: rootEpoch,
  class: 'tenant-kek',
  attributes: Buffer.from(canonicalJson({ algorithm: 'kek' }), 'utf8'),
});

const rootFor = (provider: RootProvider, epoch: number): RootKey | undefined => {
  if (provider.current.epoch === epoch) return provider.current;
  return provider.previous?.epoch === epoch ? provider.previous : undefined;
};

export const openKek = (core: CryptoCore, provider: RootProvider, stored: StoredKek): OpenKek => {
  const from = rootFor(provider, stored.rootEpoch);
  if (from === undefined)
    throw new RootKeyError(
      `the database needs root epoch ${stored.rootEpoch}, and the root key is at ${provider.current.epoch}: ${
        provider.current.epoch < stored.rootEpoch
          ? 'an erasure run has replaced the root key since this copy of it was made: restore the newest copy'
          : 'an erasure run has replaced the root key since this copy of the database was made: restore the newest database'
      }, or start with an empty service and restore a snapshot (docs/snapshots.md)`,
    );
  try {
    const context = kekContext(stored.tenantId, stored.epoch, stored.rootEpoch);
    const key = core.openRecord<KekRef>(from.key, context, stored.record);
    return { epoch: stored.epoch, key, record: stored.record };
  } catch (error) {
    if (error instanceof CoreError && (error.code === 'authentication-failed' || error.code === 'format'))
      throw new RootKeyError('the root key cannot open a key encryption key: restore both from one backup', {
        cause: error,
      });
    throw error;
  }
};

export const makeKek = (
  core: CryptoCore,
  provider: RootProvider,
  tenantId: string,
  epoch: number,
): { readonly kek: OpenKek; readonly stored: StoredKek } => {
  const key = core.generateKek();
  const rootEpoch = provider.current.epoch;
  const record = core.sealRecord(provider.current.key, kekContext(tenantId, epoch, rootEpoch), key);
  return { kek: { epoch, key, record }, stored: { tenantId, epoch, rootEpoch, record } };
};
