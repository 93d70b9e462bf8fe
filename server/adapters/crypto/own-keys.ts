// The service's own keys: their names, their places among the records, what their attributes say,
// the keys themselves in memory, and MACs under keys.

import { type Label, labelBytes } from '../../../addon/labels.ts';
import { canonicalJson } from '../../base/bytes.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { CryptoCore, KeyRef } from '../../ports/crypto-core.ts';
import { type OwnedRecord, type RecordAddress, RecordOwner } from '../../ports/key-record.ts';
import type { HashKey, TokenPurpose } from '../../ports/key-ring.ts';
import type { Repositories } from '../../ports/store.ts';
import type { KeyRecords } from './key-records.ts';

export const macOf = (core: CryptoCore, key: KeyRef, bytes: Uint8Array): string => {
  const out = Buffer.alloc(32);
  core.mac(key, { algorithm: 'hmac', digest: 'sha256' }, bytes, out);
  return out.toString('hex');
};
export const mac = (core: CryptoCore, key: KeyRef, text: string): string => macOf(core, key, Buffer.from(text, 'utf8'));

/**
 * The service's own keys, as records of the service tenant. The object ids are fixed: there is one
 * of each.
 */
export const ownKeys = {
  'row-authentication': '00000000-0000-0000-0000-000000000001',
  'token-hash': '00000000-0000-0000-0000-000000000002',
  'self-test': '00000000-0000-0000-0000-000000000003',
  'audit-signature': '00000000-0000-0000-0000-000000000004',
  'session-hash': '00000000-0000-0000-0000-000000000005',
  'api-token-hash': '00000000-0000-0000-0000-000000000006',
} as const;
export type OwnKey = keyof typeof ownKeys;
export const secretAttributes = canonicalJson({ algorithm: 'generic', bits: 256 });
export const ownAttributes: Readonly<Record<OwnKey, string>> = {
  'row-authentication': secretAttributes,
  'token-hash': secretAttributes,
  'self-test': canonicalJson({ algorithm: 'aes', bits: 256 }),
  'audit-signature': canonicalJson({ algorithm: 'ed25519' }),
  'session-hash': secretAttributes,
  'api-token-hash': secretAttributes,
};
export const isOwn = (name: string): name is OwnKey => Object.hasOwn(ownKeys, name);

export const hashKeys = ['session-hash', 'api-token-hash'] as const satisfies HashKey[];
/**
 * Each purpose has a key of its own, where it needs one: sessions end when theirs is rotated, and
 * databases notice neither. Null: no key.
 */
export const hashKeyOf = (purpose: TokenPurpose): HashKey | 'dke sign-in hashes 1' | null => {
  if (purpose === 'access-guid') return null;
  if (purpose === 'session') return 'session-hash';
  return purpose === 'api-token' || purpose === 'metrics-token' ? 'api-token-hash' : 'dke sign-in hashes 1';
};

/**
 * An own key that is replaced: the version of its record counts up. Absent `since`: the key is the
 * first one.
 */
export interface ReplacedKeyAttributes {
  readonly since?: number;
}
/** The attributes of the audit log's key name those before it. */
export interface AuditKeyAttributes extends ReplacedKeyAttributes {
  readonly algorithm: 'ed25519';
  readonly former?: readonly { readonly key: string; readonly origin: string; readonly size: number }[];
}

/** One of the service's own keys; `attributes` are null where its record says them. */
export const serviceOwner = (objectId: string, attributes: string | null): RecordOwner =>
  new RecordOwner('service', { tenantId: serviceTenantId, id: objectId, integrity: 'ok' }, attributes);

export type HeldOwnKeys = ReturnType<typeof createHeldOwnKeys>;

const names = Object.keys(ownKeys) as OwnKey[];

export const createHeldOwnKeys = (core: CryptoCore, { seal, open }: KeyRecords) => {
  const keys = new Map<OwnKey, KeyRef>();
  /** Keys that are derived from the key of the rows' codes, which never leaves the service. */
  const derived = new Map<Label, KeyRef>();
  /**
   * Version and attributes of keys in memory, as their records say; without an entry: version 1 and
   * `ownAttributes`.
   */
  const replaced = new Map<OwnKey, Pick<OwnedRecord, 'version' | 'attributes'>>();
  /**
   * The newest version of each that was seen committed. A newer one in memory is of a unit of work.
   */
  const committed = new Map<OwnKey, number>();

  const versionOf = (name: OwnKey): number => replaced.get(name)?.version ?? 1;
  const attributesOf = (name: OwnKey): string => replaced.get(name)?.attributes ?? ownAttributes[name];
  /** The owner of the record of the key in memory, unless other attributes are given. */
  const ownerOf = (name: OwnKey, attributes: string = attributesOf(name)): RecordOwner =>
    serviceOwner(ownKeys[name], attributes);
  const make = (name: OwnKey): KeyRef => {
    if (name === 'audit-signature') return core.generateEc('ed25519');
    return name === 'self-test' ? core.generateAes(256) : core.generateGeneric(32);
  };
  const stored = (read: Repositories, name: OwnKey): Promise<readonly OwnedRecord[]> =>
    read.records.of(serviceOwner(ownKeys[name], null)).list(name);
  /** Puts the key of this record into the place of the one in memory. */
  const take = (name: OwnKey, record: OwnedRecord): void => {
    const { version, attributes } = record;
    const key = open(record);
    const former = keys.get(name);
    keys.set(name, key);
    replaced.set(name, { version, attributes });
    if (former !== undefined) core.release(former);
  };
  const keyOf = (name: OwnKey): KeyRef => {
    const key = keys.get(name);
    if (key === undefined) throw new ServiceError('unavailable', 'the service is not unsealed');
    return key;
  };
  return {
    has: (name: OwnKey): boolean => keys.has(name),
    key: keyOf,
    derived: (label: Label): KeyRef => {
      const root = keyOf('row-authentication');
      const known = derived.get(label);
      if (known !== undefined) return known;
      const key = core.hkdf(root, 'sha256', new Uint8Array(0), labelBytes(label), 'generic', 32);
      derived.set(label, key);
      return key;
    },
    /** Version, attributes and owner of the record of the key in memory. */
    versionOf,
    attributesOf,
    ownerOf,
    addressOf: (name: OwnKey): RecordAddress => ({
      tenantId: serviceTenantId,
      objectId: ownKeys[name],
      version: versionOf(name),
      class: name,
    }),
    /** Every stored version, the newest one last, each with the attributes that it says. */
    stored,
    make,
    /** Makes and stores the first ones. */
    makeAll: async (tx: Repositories): Promise<void> => {
      for (const name of names) {
        const key = make(name);
        keys.set(name, key);
        await tx.records.put(seal(ownerOf(name), 1, name, key));
      }
    },
    /** Opens those that are never replaced. */
    openOthers: async (read: Repositories): Promise<void> => {
      for (const name of names) {
        if (keys.has(name)) continue;
        const record = await read.records.of(ownerOf(name)).get(1, name);
        if (record === undefined) throw new ServiceError('key-tampered', `the store has lost its ${name} key`);
        keys.set(name, open(record));
      }
    },
    clear: (): void => {
      for (const key of [...keys.values(), ...derived.values()]) core.release(key);
      keys.clear();
      derived.clear();
      replaced.clear();
      committed.clear();
    },
    /**
     * Takes the newest one that is stored. An older one than in memory is that of a look-up that
     * was overtaken, or of an older database, which the sealer finds. Answers whether it was taken,
     * and the versions before it; undefined: it was older.
     */
    follow: async (
      read: Repositories,
      name: OwnKey,
      seen: 'committed' | 'in a unit of work',
    ): Promise<{ readonly isNew: boolean; readonly former: readonly OwnedRecord[] } | undefined> => {
      const former = [...(await stored(read, name))];
      const record = former.pop();
      const known = keys.has(name) ? versionOf(name) : 0;
      if (record === undefined || record.version < known) return undefined;
      if (seen === 'committed') committed.set(name, record.version);
      const isNew = record.version > known;
      if (isNew) take(name, record);
      return { isNew, former };
    },
    /**
     * After a unit of work that was undone: takes the stored one where memory has one of that unit.
     */
    retain: async (read: Repositories, name: OwnKey): Promise<void> => {
      if (!keys.has(name) || versionOf(name) <= (committed.get(name) ?? 0)) return;
      const record = (await stored(read, name)).at(-1);
      if (record !== undefined && record.version < versionOf(name)) take(name, record);
    },
  };
};
