// The key that signs the audit log: the present one, and what is known of those before it.

import { canonicalJson, toBase64 } from '../../base/bytes.ts';
import type { CryptoCore, KeyRef } from '../../ports/crypto-core.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { Repositories } from '../../ports/store.ts';
import type { KeyRecords } from './key-records.ts';
import type { AuditKeyAttributes, HeldOwnKeys } from './own-keys.ts';

export const createAuditKey = (
  core: CryptoCore,
  own: HeldOwnKeys,
  { seal }: KeyRecords,
): Pick<
  KeyRing,
  'signAudit' | 'auditPublicKey' | 'auditKeys' | 'auditKeySince' | 'refreshAuditKey' | 'followAuditKey' | 'makeAuditKey'
> => {
  const readAttributes = (): AuditKeyAttributes =>
    JSON.parse(own.attributesOf('audit-signature')) as AuditKeyAttributes;
  /** The last 32 bytes of a SubjectPublicKeyInfo of RFC 8410 are the key. */
  const publicHalf = (key: KeyRef): Buffer => core.exportPublicKey(key).subarray(-32);
  const followAuditKey = async (tx: Repositories): Promise<void> => {
    await own.follow(tx, 'audit-signature', 'in a unit of work');
  };
  return {
    signAudit: (text) => core.sign(own.key('audit-signature'), { algorithm: 'ed25519' }, Buffer.from(text, 'utf8')),
    auditPublicKey: () => publicHalf(own.key('audit-signature')),
    auditKeys: () => [
      { publicKey: publicHalf(own.key('audit-signature')), until: null },
      ...(readAttributes().former ?? []).map(({ key, origin, size }) => ({
        publicKey: Buffer.from(key, 'base64'),
        until: { origin, size },
      })),
    ],
    auditKeySince: () => readAttributes().since ?? null,
    refreshAuditKey: async ({ read }) => {
      await own.follow(read, 'audit-signature', 'committed');
    },
    followAuditKey,
    makeAuditKey: () => {
      const key = own.make('audit-signature');
      return {
        publicKey: publicHalf(key),
        sign: (text) => core.sign(key, { algorithm: 'ed25519' }, Buffer.from(text, 'utf8')),
        store: async (tx, { origin, size }, since) => {
          await followAuditKey(tx);
          const before = own.addressOf('audit-signature');
          const { former = [] } = readAttributes();
          const last = { key: toBase64(publicHalf(own.key('audit-signature'))), origin, size };
          const attributes = canonicalJson({ algorithm: 'ed25519', since, former: [last, ...former] });
          const owner = own.ownerOf('audit-signature', attributes);
          await tx.records.put(seal(owner, before.version + 1, 'audit-signature', key));
          await tx.records.wipe(before);
        },
        release: () => core.release(key),
      };
    },
  };
};
