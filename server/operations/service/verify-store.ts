// The offline check of everything that is stored: every key record opens, every policy row is as
// the service wrote it, the audit log is whole, destroyed keys have no material, and no key is in a
// state that no operation leaves behind. Changes nothing.

import { verifyLogNote } from '../../base/checkpoint.ts';
import { growTree, leafHash, rootHash } from '../../base/merkle-tree.ts';
import type { RequestLogVerdict } from '../../base/request-minutes.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { toText } from '../../domain/difference.ts';
import type { Key } from '../../domain/key.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { type RecordAddress, recordAttributes, type WholeRecord } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import { auditOrigin } from '../audit/audit-origin.ts';
import { verifyRequests } from '../requests/request-minutes.ts';
import { rootOf } from '../shared/tree-of-log.ts';

const page = 500;

export interface VerificationReport {
  readonly tenants: number;
  readonly keyEncryptionKeys: number;
  readonly rows: number;
  readonly keys: number;
  readonly destroyedKeys: number;
  readonly objects: number;
  readonly records: number;
  readonly auditRecords: number;
  readonly checkpointedRecords: number;
  readonly requests: number;
  /** One line each: what is wrong, and where. */
  readonly findings: readonly string[];
}

type Needs = Pick<Ports, 'ring' | 'root'> & {
  readonly store: Pick<Ports['store'], 'read'> & { readonly committed?: Ports['store']['committed'] };
  readonly core: Pick<Ports['core'], 'release'>;
};

const copies: readonly string[] = ['vault-copy', 'sealed-copy'];

type Read = Needs['store']['read'];
/** Where each check puts its findings. */
type Findings = string[];

/**
 * Every KEK was opened under the root by unlocking; here the newest of each tenant, from what is
 * stored.
 */
const checkTenants = async ({ store: { read }, root }: Needs, findings: Findings) => {
  const keks = await read.keks.list();
  const tenants = new Set(keks.map(({ tenantId }) => tenantId));
  /**
   * Nothing of these can be opened, and their rows are removed step by step, also after a restart.
   */
  const purged = new Set<string>();
  for (const { id, state } of await read.tenants.list()) {
    if (state === 'purged') purged.add(id);
    if (state !== 'purged' && !tenants.has(id)) findings.push(`tenant ${id} has no key`);
    // Its key was deleted in the commit that purged it: with it, everything sealed under it would
    // open.
    if (state === 'purged' && tenants.has(id)) findings.push(`tenant ${id} is purged, but its key still exists`);
  }
  if (root.previous === undefined)
    for (const { tenantId, epoch, rootEpoch } of keks)
      if (rootEpoch !== root.current.epoch)
        findings.push(`key ${epoch} of tenant ${tenantId} is sealed under root epoch ${rootEpoch}`);
  return { keks: keks.length, tenants: tenants.size, purged };
};

/** Returns how many rows were checked. */
const checkRows = async (read: Read, findings: Findings): Promise<number> => {
  let rows = 0;
  for (const table of read.whole.policyTables()) {
    const checked = await read.whole.checkRows(table);
    rows += checked.rows;
    for (const id of checked.tampered) findings.push(`${table} ${id}: the row was changed from outside`);
  }
  const { differences, older } = await read.whole.compareRowSet();
  for (const each of differences)
    findings.push(
      `rows: they differ from those that the service wrote last: older rows were restored, or rows were removed or added (${toText(each)})`,
    );
  for (const name of older) findings.push(`${name}: an older version of the row was restored`);
  return rows;
};

/** The copies that exist. */
interface Present {
  readonly records: number;
  /** Whether an object has any copy. */
  any(id: string): boolean;
  has(id: string, copy: string, version: number): boolean;
  /** Every one of a tenant that is not purged. */
  readonly places: ReadonlySet<string>;
}

const placeName = ({ tenantId, objectId, version, class: own }: RecordAddress): string =>
  `${own} ${version} of ${objectId} in ${tenantId}`;

const checkRecords = async (
  { store: { read }, ring }: Needs,
  purged: ReadonlySet<string>,
  findings: Findings,
): Promise<Present> => {
  const opens = (record: WholeRecord): boolean => {
    const { record: sealed } = record;
    return sealed !== null && ring.opens({ ...record, record: sealed });
  };
  /** Classes and versions of the records that each object has, by object id. */
  const present = new Map<string, Set<string>>();
  const places = new Set<string>();
  let records = 0;
  for (let after = 0; ; after += page) {
    const batch = await read.whole.records(after, page);
    for (const record of batch) {
      if (record.record === null || purged.has(record.tenantId)) continue;
      places.add(placeName(record));
      records += 1;
      const what = `${record.class} ${record.version} of ${record.objectId}`;
      if (!opens(record)) findings.push(`${what}: the record cannot be opened`);
      const found = present.get(record.objectId) ?? new Set();
      found.add(`${record.class} ${record.version}`);
      present.set(record.objectId, found);
      if (!copies.includes(record.class)) continue;
      const key = await read.keys.stored(everyTenant, record.objectId);
      if (key === undefined) findings.push(`${what}: its key does not exist`);
      else if (recordAttributes.key(key) !== record.attributes) findings.push(`${what}: it does not match its key`);
    }
    if (batch.length < page) break;
  }
  return {
    records,
    any: (id) => (present.get(id)?.size ?? 0) > 0,
    has: (id, copy, version) => present.get(id)?.has(`${copy} ${version}`) === true,
    places,
  };
};

/**
 * Each row that owns a secret has it, and each secret has its row: the keys have a check of their
 * own.
 */
const checkPlaces = async (
  read: Read,
  present: Present,
  purged: ReadonlySet<string>,
  findings: Findings,
): Promise<void> => {
  const { classes, places } = await read.whole.places();
  const needed = new Set(places.filter(({ tenantId }) => !purged.has(tenantId)).map(placeName));
  for (const place of needed) if (!present.places.has(place)) findings.push(`${place}: the record is missing`);
  for (const place of present.places)
    if (classes.some((own) => place.startsWith(`${own} `)) && !needed.has(place))
      findings.push(`${place}: no row owns the record`);
};

const checkKey = async (
  read: Read,
  key: Key,
  present: Present,
  isPurged: boolean,
  say: (what: string) => void,
): Promise<void> => {
  if ((key.state === 'destroyed') !== (key.destroyedAt !== null))
    say('its state and its time of destruction contradict each other');
  if (key.state === 'disabled' && key.disabledAt === null) say('the time when it was disabled is missing');
  if (key.unrecoverableAt !== null && key.destroyedAt === null) say('it is unrecoverable but not destroyed');
  const versions = await read.keys.versions(key.id);
  if (versions.length !== key.currentVersion || !versions.some(({ version }) => version === key.currentVersion))
    say(`it has ${versions.length} versions, but its current version is ${key.currentVersion}`);
  if (key.state === 'destroyed') {
    if (present.any(key.id)) say('its key material still exists');
    return;
  }
  if (isPurged) return;
  for (const { version } of versions) {
    if (key.kind === 'master' && !present.has(key.id, 'sealed-copy', version))
      say(`version ${version} has lost its sealed copy`);
    const vaultCopy = key.state !== 'soft-deleted' || key.reimportedAt !== null;
    if (vaultCopy && !present.has(key.id, 'vault-copy', version)) say(`version ${version} has lost its vault copy`);
  }
};

const checkKeys = async (read: Read, present: Present, purged: ReadonlySet<string>, findings: Findings) => {
  let keys = 0;
  let destroyedKeys = 0;
  for (let after: string | undefined; ; ) {
    const batch = await read.keys.list(everyTenant, {}, { after, limit: page });
    for (const key of batch) {
      keys += 1;
      if (key.state === 'destroyed') destroyedKeys += 1;
      await checkKey(read, key, present, purged.has(key.tenantId), (what) => {
        findings.push(`key ${key.id} (${key.state}): ${what}`);
      });
    }
    if (batch.length < page) return { keys, destroyedKeys };
    after = batch.at(-1)?.id;
  }
};

/** Returns how many token objects were checked. */
const checkObjects = async (read: Read, present: Present, findings: Findings): Promise<number> => {
  let objects = 0;
  for (let after = 0; ; ) {
    const batch = await read.whole.objects(after, page);
    for (const { id, handle, destroyed, hasContent } of batch) {
      objects += 1;
      if (destroyed && (hasContent || present.has(id, 'object-content', 1)))
        findings.push(`object ${handle}: it is destroyed, but its content still exists`);
      const key = await read.keys.stored(everyTenant, id);
      if (key !== undefined && destroyed !== (key.state === 'destroyed'))
        findings.push(`object ${handle}: only one of it and its key is destroyed`);
    }
    if (batch.length < page) return objects;
    after = batch.at(-1)?.handle ?? after;
  }
};

/** The notes of the checkpoints, by their size. */
const readCheckpoints = async (read: Read): Promise<ReadonlyMap<number, string>> => {
  const checkpoints = new Map<number, string>();
  for (let after: string | undefined; ; ) {
    const batch = await read.audit.checkpoints('oldest', { after, limit: page });
    for (const { size, note } of batch) checkpoints.set(size, note);
    if (batch.length < page) return checkpoints;
    after = String(batch.at(-1)?.size);
  }
};

/**
 * Builds the tree of the audit log again, and compares it with every checkpoint, the stored tree,
 * and the anchor next to the root key.
 */
const checkAuditLog = async ({ store: { read, committed }, ring, root }: Needs, findings: Findings) => {
  const size = await read.audit.size();
  const confirmed = committed?.found;
  if (confirmed !== undefined && confirmed.records > size)
    findings.push(`the audit log has ${size} records, but had ${confirmed.records}: confirmed changes are missing`);
  else if (
    confirmed?.root !== undefined &&
    (await rootOf(read.audit, confirmed.records))?.equals(confirmed.root) !== true
  )
    findings.push(`audit log: records 1 to ${confirmed.records} are not those that were confirmed`);
  const tree = growTree();
  const checkpoints = await readCheckpoints(read);
  const origin = await auditOrigin(read);
  const logKeys = ring.auditKeys();
  let checkpointed = 0;
  const compare = (note: string, at: number, where: string): void => {
    const checkpoint = verifyLogNote(note, origin, logKeys);
    if (checkpoint === null) findings.push(`audit log: ${where} is not signed by the key of this log`);
    else if (checkpoint.size !== at || !checkpoint.root.equals(tree.root()))
      findings.push(`audit log: records 1 to ${at} do not match ${where}`);
    else checkpointed = Math.max(checkpointed, at);
  };
  const anchorNote = root.anchor.read();
  const anchored = anchorNote === undefined ? null : verifyLogNote(anchorNote, origin, logKeys);
  if (anchored?.rows !== undefined && ((await read.whole.rowSet())?.version ?? 0) < anchored.rows.version)
    findings.push(`rows: they are older than the checkpoint next to the root key`);
  if (anchored !== null && anchored.size > size)
    findings.push(`audit log: it has ${size} records, but the checkpoint next to the root key has ${anchored.size}`);
  for (let after: string | undefined; ; ) {
    const batch = await read.audit.list(everyTenant, { order: 'oldest' }, { after, limit: page });
    for (const event of batch) {
      if (event.sequence !== tree.size + 1) findings.push(`audit record ${tree.size + 1} is missing`);
      const leaf = leafHash(Buffer.from(auditEntry(event), 'utf8'));
      if (!(await read.audit.subtree(0, event.sequence - 1)).equals(leaf))
        findings.push(`audit record ${event.sequence} was changed`);
      tree.append(leaf);
      const note = checkpoints.get(tree.size);
      if (note !== undefined) compare(note, tree.size, `the checkpoint at ${tree.size}`);
      if (anchorNote !== undefined && anchored?.size === tree.size)
        compare(anchorNote, tree.size, 'the checkpoint next to the root key');
    }
    if (batch.length < page) break;
    after = String(batch.at(-1)?.sequence);
  }
  if (tree.size !== size) findings.push(`audit log: ${tree.size} records exist, but ${size} were counted`);
  else if (!(await rootHash(read.audit.subtree, size)).equals(tree.root()))
    findings.push('audit log: the stored tree does not match its records');
  return { size, checkpointed };
};

const noRequests: RequestLogVerdict = {
  ...{ requests: 0, minutes: 0, late: 0, pruned: 0, dropped: 0, droppedUnsigned: 0, open: 0 },
  findings: [],
};

export const verifyStore = async (needs: Needs): Promise<VerificationReport> => {
  const { read } = needs.store;
  const findings: Findings = [];
  /** A value that no check expects is a finding, and the other checks follow. */
  const checked = async <T>(what: string, otherwise: T, check: () => Promise<T>): Promise<T> => {
    try {
      return await check();
    } catch (error) {
      findings.push(`${what}: the check failed (${error instanceof Error ? error.message : 'unknown'})`);
      return otherwise;
    }
  };
  const { keks, tenants, purged } = await checked('tenants', { keks: 0, tenants: 0, purged: new Set<string>() }, () =>
    checkTenants(needs, findings),
  );
  const rows = await checked('rows', 0, () => checkRows(read, findings));
  const nothing: Present = { records: 0, any: () => false, has: () => false, places: new Set() };
  const present = await checked('records', nothing, () => checkRecords(needs, purged, findings));
  await checked('owners of records', undefined, () => checkPlaces(read, present, purged, findings));
  const { keys, destroyedKeys } = await checked('keys', { keys: 0, destroyedKeys: 0 }, () =>
    checkKeys(read, present, purged, findings),
  );
  const objects = await checked('objects', 0, () => checkObjects(read, present, findings));
  const { size, checkpointed } = await checked('audit log', { size: 0, checkpointed: 0 }, () =>
    checkAuditLog(needs, findings),
  );
  const requests = await checked('request log', noRequests, () => verifyRequests(read, { from: 0, to: 8.64e15 }));
  for (const finding of requests.findings) findings.push(`request log: ${finding}`);
  return {
    tenants,
    keyEncryptionKeys: keks,
    rows,
    keys,
    destroyedKeys,
    objects,
    records: present.records,
    auditRecords: size,
    checkpointedRecords: checkpointed,
    requests: requests.requests,
    findings,
  };
};
