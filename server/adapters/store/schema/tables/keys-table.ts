// Keys, their versions and sealed records, and what finds them by tag.

import { canonicalJson } from '../../../../base/bytes.ts';
import type { Key } from '../../../../domain/key.ts';
import { refusalOfState } from '../../../../domain/key-policy.ts';
import { effectiveState, type KeyState } from '../../../../domain/lifecycle.ts';
import type { Integrity, VaultState } from '../../../../domain/vault.ts';
import { type RecordClass, recordAttributes, type StoredRecord } from '../../../../ports/key-record.ts';
import type { SnapshotRow } from '../../../../ports/snapshot-archive.ts';
import { membersOf } from './members.ts';
import { noted } from './reactivates.ts';
import {
  besideThings,
  bytes,
  integer,
  long,
  plainTable,
  policyTable,
  type RowOf,
  rowMac,
  rowVersion,
  text,
} from './table.ts';
import { parseTags, parseUsages, toBuffer } from './values.ts';

const isUsable = ({ kind, state, disabled_at: disabledAt }: SnapshotRow): boolean =>
  refusalOfState({ kind, state, disabledAt } as Parameters<typeof refusalOfState>[0]) === null;

export const keysTables = {
  keys: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      vault_id: text({ of: 'vaults' }),
      name: text(),
      kind: text(),
      algorithm: text(),
      bits: integer(),
      usages: text(),
      state: text(),
      disabled_at: long({ null: true }),
      current_version: integer(),
      created_at: long(),
      deleted_at: long({ null: true }),
      reimported_at: long({ null: true }),
      destroyed_at: long({ null: true }),
      unrecoverable_at: long({ null: true }),
      application_id: text({ of: 'tde_applications', null: true }),
      row_mac: rowMac,
      first_used_at: long({ null: true }),
      last_used_at: long({ null: true }),
      /** Canonical JSON; null: none. */
      tags: text({ null: true }),
      row_version: rowVersion,
      /**
       * For a restored copy: the key in the tenant that the snapshot was of, or what that one was a
       * copy of. Null: the key is not a copy.
       */
      copy_of: text({ null: true }),
    },
    indexes: [
      { name: 'keys_by_vault', columns: ['vault_id', 'id'] },
      { name: 'keys_by_application', columns: ['application_id', 'id'] },
      { name: 'keys_by_destruction', columns: ['destroyed_at', 'unrecoverable_at'] },
      { name: 'keys_of_tenant', columns: ['tenant_id', 'id'] },
      { name: 'keys_by_state', columns: ['tenant_id', 'state', 'id'] },
      { name: 'keys_by_kind', columns: ['tenant_id', 'kind', 'id'] },
      { name: 'keys_by_use', columns: ['tenant_id', 'last_used_at', 'id'] },
      { name: 'keys_never_used', columns: ['tenant_id', 'id'], where: '"last_used_at" is null' },
      // Destroyed keys that are not yet unrecoverable.
      {
        name: 'keys_to_erase',
        columns: ['destroyed_at'],
        where: '"destroyed_at" is not null and "unrecoverable_at" is null',
      },
      { name: 'keys_by_copy', columns: ['copy_of', 'id'], where: '"copy_of" is not null' },
    ],
    plans: { keys_by_scope: "coalesce(tenant_id, '')" },
    codeWhenSet: { tags: /^\[/, copy_of: /^[0-9a-f]{8}-/ },
    beside: { first_used_at: 'a mark of use', last_used_at: 'a mark of use' },
    snapshots: {
      marks: ['first_used_at', 'last_used_at'],
      fixed: ['kind', 'algorithm', 'bits', 'created_at'],
      beside: 'copied',
      existing: 'replaced',
      reactivates: (row, before) =>
        // A new key lets no caller use anything on its own. A soft-deleted master key is not among
        // them: its database has continued to use it.
        before !== undefined && !isUsable(before) && isUsable(row) ? [noted('key', row, before)] : [],
    },
    records: {
      classes: ['vault-copy', 'sealed-copy'],
      each: null,
      attributes: ({ algorithm, bits, kind }) =>
        recordAttributes.key({ algorithm: String(algorithm), bits: Number(bits), kind: String(kind) }),
    },
    purge: 'by a step',
    search: {
      kind: 'key',
      terms: { name: 'name', tags: 'tag' },
      state: ({ state, vault_state: vault }) => effectiveState(state as KeyState, (vault ?? 'deleted') as VaultState),
    },
    statistics: { counted: 'keys', where: () => `"state" != 'destroyed'` },
    pruned: { never: 'tombstones' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  key_records: plainTable({
    ...besideThings,
    columns: {
      object_id: text({ to: 'the row that owns it' }),
      version: integer(),
      class: text(),
      tenant_id: text({ to: 'a tenant that may be gone' }),
      epoch: integer(),
      attributes: text(),
      /** Null after it was wiped. */
      record: bytes({ null: true }),
    },
    primaryKey: { name: 'key_records_pk', columns: ['tenant_id', 'object_id', 'version', 'class'] },
    indexes: [
      // Records under older keys, in the order in which an erasure run reseals them.
      {
        name: 'key_records_by_epoch',
        columns: ['tenant_id', 'epoch', 'object_id', 'version', 'class'],
        where: '"record" is not null',
      },
    ],
    unauthenticated: 'records authenticate themselves, and where they belong',
    snapshots: { without: 'carried as keys, sealed to recovery keys' },
    purge: 'by a step',
    pruned: { by: 'the end of its owner, which wipes it' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  key_versions: plainTable({
    ...besideThings,
    columns: {
      key_id: text({ of: 'keys' }),
      version: integer(),
      created_at: long(),
    },
    primaryKey: { name: 'key_versions_pk', columns: ['key_id', 'version'] },
    indexes: [{ name: 'key_versions_by_age', columns: ['created_at', 'key_id', 'version'] }],
    unauthenticated: 'times; the key says how many there are',
    snapshots: {
      marks: [],
      fixed: ['created_at'],
      beside: 'copied',
      existing: 'kept',
      reactivates: { nothing: 'times' },
    },
    purge: { kept: 'numbers and times of the tombstones' },
    pruned: { never: 'numbers and times of tombstones' },
    copied: 'for trials, too',
  }),
  /** Derived from `keys`: finds the keys of a tag. */
  key_tags: plainTable({
    ...besideThings,
    columns: {
      tenant_id: text({ to: 'a tenant that may be gone' }),
      tag: text(),
      key_id: text({ to: 'its key' }),
    },
    primaryKey: { name: 'key_tags_pk', columns: ['tenant_id', 'tag', 'key_id'] },
    indexes: [{ name: 'key_tags_by_key', columns: ['key_id'] }],
    unauthenticated: 'where the list of keys of a tag looks: made of what stands in other rows',
    snapshots: { without: 'made from other rows, and again with them' },
    purge: { kept: 'made from the tombstones' },
    pruned: { by: 'a change of its key' },
    copied: 'for trials, too',
  }),
  /**
   * For keys that came from a snapshot of another tenant: what their XKS ciphertexts are bound to.
   */
  key_bindings: plainTable({
    ...besideThings,
    columns: {
      key_id: text({ key: true, of: 'keys' }),
      binding: bytes(),
    },
    unauthenticated: 'what a ciphertext is bound to: another value opens nothing',
    snapshots: {
      marks: [],
      fixed: [],
      beside: 'copied',
      existing: 'kept',
      reactivates: { nothing: 'opens nothing' },
    },
    purge: { kept: 'opens nothing' },
    pruned: { never: 'what a key is bound to' },
    copied: 'for trials, too',
  }),
};

type Row<T extends keyof typeof keysTables> = RowOf<(typeof keysTables)[T]>;

/** Classes of the records of the service's own keys, which do not belong to a table. */
export const serviceRecordClasses: readonly RecordClass[] = [
  'row-authentication',
  'token-hash',
  'api-token-hash',
  'session-hash',
  'adopted-token-hash',
  'audit-signature',
  'self-test',
];

export const recordMembers = membersOf<StoredRecord>()(keysTables.key_records, 'record');

/** Undefined when it was wiped. */
export const toRecord = (row: Row<'key_records'>): StoredRecord | undefined =>
  row.record === null ? undefined : { ...recordMembers.fromRow(row), record: toBuffer(row.record) };

const keyMembers = membersOf<Key>()(keysTables.keys, 'usages', 'first_used_at', 'last_used_at', 'tags');

/** Without the times of its use, which are not policy and are written on their own. */
export const keyRow = (key: Key) => ({
  ...keyMembers.toRow(key),
  usages: canonicalJson(key.usages),
  tags: key.tags.length === 0 ? null : canonicalJson(key.tags),
});

export const toKey = (row: Row<'keys'>, integrity: Integrity): Key => ({
  ...keyMembers.fromRow(row),
  usages: parseUsages(row.usages),
  tags: parseTags(row.tags),
  firstUsedAt: row.first_used_at,
  lastUsedAt: row.last_used_at,
  integrity,
});
