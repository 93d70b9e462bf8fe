// What is checked of rows and records that the working memory reads. A row that was changed from
// outside raises one alarm in the life of this process; the row itself is refused every time.

import { serviceActor } from '../../domain/actor.ts';
import { type Changes, mergeChanges } from '../../domain/changes.ts';
import type { Integrity } from '../../domain/vault.ts';
import type { StoredRecord } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import { about, recordEvent } from '../shared/record-event.ts';

interface CheckedRow {
  readonly id: string;
  readonly tenantId: string;
  readonly integrity: Integrity;
  /** The application of an access_guid. */
  readonly applicationId?: string | null;
}

/** What holds rows of a table; token objects are read at each use. */
const holders: Readonly<Record<string, (row: CheckedRow) => Changes>> = {
  tenants: ({ id }) => ({ tenants: [id] }),
  vaults: ({ id }) => ({ vaults: [id] }),
  endpoints: ({ id }) => ({ endpoints: [id] }),
  keys: ({ id }) => ({ keys: [id] }),
  tde_applications: ({ id }) => ({ applications: [id] }),
  access_guids: ({ applicationId }) => (applicationId == null ? {} : { applications: [applicationId] }),
};

export interface ReadChecks {
  alarm(table: string, id: string, tenantId: string): void;
  /** False, and an alarm, when the row was changed from outside. */
  sound(table: string, row: CheckedRow): boolean;
  /**
   * What was refused and not sound since then: it is read again, because its row may be genuine.
   */
  refused(): Changes;
  /**
   * Reads key encryption keys again when one of these records needs another one, which another node
   * has made since.
   */
  knowKeks(records: readonly StoredRecord[]): Promise<void>;
}

export const createReadChecks = ({ store, ring, log }: Pick<Ports, 'store' | 'ring' | 'log'>): ReadChecks => {
  const alarmed = new Set<string>();
  const refused = new Map<string, Changes>();
  const alarm: ReadChecks['alarm'] = (table, id, tenantId) => {
    const name = `${table} ${id}`;
    if (alarmed.has(name)) return;
    alarmed.add(name);
    log.error('a stored row was changed from outside: every use of it is refused', { table, id });
    store
      .write((tx) =>
        recordEvent(tx, 'row.tampered', serviceActor('integrity'), about('service', { id, tenantId }), { table }),
      )
      .catch((error: unknown) => {
        alarmed.delete(name);
        log.error('the alarm could not be recorded', { table, id, error });
      });
  };
  return {
    alarm,
    sound: (table, row) => {
      if (row.integrity === 'ok') {
        if (refused.size > 0) refused.delete(`${table} ${row.id}`);
        return true;
      }
      alarm(table, row.id, row.tenantId);
      const held = holders[table]?.(row);
      if (held !== undefined) refused.set(`${table} ${row.id}`, held);
      return false;
    },
    refused: () => mergeChanges([...refused.values()]),
    knowKeks: async (records) => {
      if (!records.every((record) => ring.knows(record))) await ring.refresh(store.read);
    },
  };
};
