// PKCS#11 objects of token keys, and requests of database hosts that were carried out.

import { canonicalJson } from '../../../../base/bytes.ts';
import { contentDigest } from '../../../../base/content-digest.ts';
import type { KeyState } from '../../../../domain/lifecycle.ts';
import { repeatMs } from '../../../../domain/tde.ts';
import type { Integrity } from '../../../../domain/vault.ts';
import { recordAttributes } from '../../../../ports/key-record.ts';
import type { StoredObject } from '../../../../ports/tde-repositories.ts';
import { differIn } from '../../../../ports/tenant-rows.ts';
import { membersOf } from './members.ts';
import { besideThings, bytes, integer, long, policyTable, type RowOf, rowMac, rowVersion, text } from './table.ts';
import { bytesOf, flag, parseUsages } from './values.ts';

/** What decides what a token object may be used for, and whether its value may leave. */
const protection = ['usages', 'sensitive', 'extractable', 'attributes', 'wrapped_sensitive', 'rules'] as const;

export const tokenObjectsTables = {
  tde_objects: policyTable({
    columns: {
      handle: integer({ key: true }),
      id: text({ unique: true }),
      tenant_id: text({ of: 'tenants' }),
      group_id: text({ of: 'tde_groups' }),
      application_id: text({ of: 'tde_applications' }),
      class: text(),
      label: text(),
      algorithm: text({ null: true }),
      bits: integer({ null: true }),
      usages: text(),
      sensitive: integer(),
      extractable: integer(),
      always_sensitive: integer(),
      never_extractable: integer(),
      modifiable: integer(),
      destroyable: integer(),
      local: integer(),
      private: integer(),
      check_value: text({ null: true }),
      public_key: text({ null: true }),
      wrapped_sensitive: integer(),
      attributes: text(),
      created_at: long(),
      destroyed_at: long({ null: true }),
      content: bytes({ null: true }),
      // JSON. Null: none.
      rules: text({ null: true }),
      // SHA-256 of the content, hexadecimal.
      content_digest: text({ null: true }),
      // When the object had another content for the last time.
      content_replaced_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [
      { name: 'tde_objects_by_label', columns: ['group_id', 'label', 'handle'] },
      { name: 'tde_objects_by_public_key', columns: ['group_id', 'public_key', 'handle'] },
      { name: 'tde_objects_by_group', columns: ['group_id', 'handle'] },
      { name: 'tde_objects_by_label_alone', columns: ['label', 'handle'] },
      { name: 'tde_objects_by_application', columns: ['application_id', 'handle'] },
      // A snapshot reads the rows of a tenant in the order of their ids.
      { name: 'tde_objects_of_tenant', columns: ['tenant_id', 'id'] },
      {
        name: 'tde_objects_by_destruction',
        columns: ['destroyed_at', 'handle'],
        where: '"destroyed_at" is not null',
      },
      {
        name: 'tde_objects_by_replacement',
        columns: ['content_replaced_at', 'handle'],
        where: '"content_replaced_at" is not null',
      },
    ],
    codeWhenSet: { rules: /^\{/ },
    codeSinceLayout: { content_digest: 3, content_replaced_at: 3 },
    beside: { content: 'its digest is under the code, and it authenticates itself' },
    digests: { content: 'content_digest' },
    snapshots: {
      marks: [],
      fixed: ['class', 'algorithm', 'bits', 'check_value', 'created_at'],
      beside: 'copied',
      existing: 'replaced',
      reactivates: (row, before) =>
        // Attributes that have become stricter since: what they protect against would be possible
        // again.
        before !== undefined && row.destroyed_at === null && differIn(protection, row, before)
          ? [{ kind: 'token-object', change: 'changed', label: String(row.label) }]
          : [],
    },
    records: {
      classes: ['object-content'],
      each: { tenant: 'tenant_id', where: '"content" is not null and "destroyed_at" is null' },
      attributes: () => recordAttributes.content,
    },
    purge: 'by a step',
    search: { not: 'its key is found; others are few, and in the list of an application' },
    statistics: { none: 'its key is counted' },
    pruned: { never: 'tombstones' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  /** Requests of database hosts that were carried out. `handles`: JSON. */
  tde_requests: policyTable({
    ...besideThings,
    columns: {
      id: text({ key: true }),
      fingerprint: text(),
      handles: text(),
      at: long(),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'tde_requests_by_time', columns: ['at'] }],
    beside: {},
    snapshots: { without: 'requests of their hour' },
    purge: { kept: 'for a week, without a value' },
    pruned: { past: { at: repeatMs } },
  }),
};

type Row<T extends keyof typeof tokenObjectsTables> = RowOf<(typeof tokenObjectsTables)[T]>;

const members = membersOf<StoredObject>()(
  tokenObjectsTables.tde_objects,
  'usages',
  'sensitive',
  'extractable',
  'always_sensitive',
  'never_extractable',
  'modifiable',
  'destroyable',
  'local',
  'private',
  'wrapped_sensitive',
  'content',
  'content_digest',
  'rules',
);

export const objectRow = (object: StoredObject) => ({
  ...members.toRow(object),
  usages: canonicalJson(object.usages),
  sensitive: flag(object.sensitive),
  extractable: flag(object.extractable),
  always_sensitive: flag(object.alwaysSensitive),
  never_extractable: flag(object.neverExtractable),
  modifiable: flag(object.modifiable),
  destroyable: flag(object.destroyable),
  local: flag(object.local),
  private: flag(object.private),
  wrapped_sensitive: flag(object.wrappedSensitive),
  content: object.content,
  content_digest: object.content === null ? null : contentDigest(object.content),
  rules: object.rules === null ? null : canonicalJson(object.rules),
});

/** `row`: without its content where that was not read. */
export const toObject = (
  { content, ...row }: Omit<Row<'tde_objects'>, 'content'> & Partial<Pick<Row<'tde_objects'>, 'content'>>,
  state: KeyState,
  integrity: Integrity,
): StoredObject => ({
  ...members.fromRow(row),
  usages: parseUsages(row.usages),
  sensitive: row.sensitive === 1,
  extractable: row.extractable === 1,
  alwaysSensitive: row.always_sensitive === 1,
  neverExtractable: row.never_extractable === 1,
  modifiable: row.modifiable === 1,
  destroyable: row.destroyable === 1,
  local: row.local === 1,
  private: row.private === 1,
  wrappedSensitive: row.wrapped_sensitive === 1,
  content: bytesOf(content ?? null),
  rules: row.rules === null ? null : JSON.parse(row.rules),
  version: Number(row.row_version),
  state,
  integrity,
});
