// What a unit of work changes that other nodes must know, noted where it is written, so that no
// operation can omit it: what nodes keep in memory, and that an erasure run is due. What is read
// from the store at each use (tokens, other settings, the logs) is not noted.

import { serviceTenantId } from '../../../base/ids.ts';
import { type Changes, rotationSetting } from '../../../domain/changes.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { TablesBy } from '../../../ports/tables.ts';

type Writers = {
  readonly [G in keyof Repositories]?: {
    readonly [M in keyof Repositories[G]]?: Repositories[G][M] extends (...values: infer V) => Promise<unknown>
      ? (...values: V) => Changes
      : never;
  };
};

/** Each method that writes rows of a table whose declaration says that other nodes hear of it. */
const writers = {
  tenant_keks: {
    keks: {
      insert: () => ({ keks: true }),
      remove: () => ({ keks: true }),
    },
  },
  key_records: {
    // The service's own keys are in memory, too.
    records: {
      put: ({ tenantId }) => (tenantId === serviceTenantId ? { keks: true } : {}),
      wipe: ({ tenantId }) => (tenantId === serviceTenantId ? { keks: true } : {}),
    },
  },
  tenants: {
    tenants: {
      insert: ({ id }) => ({ tenants: [id] }),
      update: ({ id }) => ({ tenants: [id] }),
    },
  },
  decisions: {
    decisions: {
      set: (name, value) => (name === rotationSetting && value !== null ? { destroyed: true } : {}),
    },
  },
  vaults: {
    vaults: {
      insert: ({ id }) => ({ vaults: [id] }),
      update: ({ id }) => ({ vaults: [id] }),
    },
  },
  keys: {
    keys: {
      update: ({ id, state, unrecoverableAt }) => ({
        keys: [id],
        ...(state === 'destroyed' && unrecoverableAt === null ? { destroyed: true } : {}),
      }),
    },
  },
  outside_copies: {
    // What waited for the file is concluded by the node that runs erasure runs.
    outsideCopies: {
      update: ({ destroyedAt }) => (destroyedAt === null ? {} : { destroyed: true }),
    },
  },
  tde_applications: {
    applications: {
      insert: ({ id }) => ({ applications: [id] }),
      update: ({ id }) => ({ applications: [id] }),
    },
  },
  access_guids: {
    accessGuids: {
      insert: ({ applicationId }) => ({ applications: [applicationId] }),
      update: ({ applicationId }) => ({ applications: [applicationId] }),
    },
  },
  tde_objects: {
    objects: {
      insert: ({ handle }) => ({ objects: [handle] }),
      update: ({ handle, contentReplacedAt }) => ({
        objects: [handle],
        ...(contentReplacedAt === null ? {} : { destroyed: true }),
      }),
      destroy: (handle) => ({ objects: [handle], destroyed: true }),
    },
  },
  endpoints: {
    endpoints: {
      insert: ({ id }) => ({ endpoints: [id] }),
      update: ({ id }) => ({ endpoints: [id] }),
    },
  },
  endpoint_credentials: {
    endpoints: {
      insertCredential: (_tenantId, { endpointId }) => ({ endpoints: [endpointId] }),
      removeCredential: (id) => ({ credentials: [id] }),
    },
  },
} satisfies Readonly<Record<TablesBy['told'], Writers>>;

/** The repositories that write rows of many tables. */
const ofManyTables = {
  tenantRows: {
    put: (tenantId, _table, rows) => (rows.length === 0 ? {} : { restored: [tenantId] }),
    place: (places) => ({ objects: places.map(({ handle }) => handle), keys: places.map(({ id }) => id) }),
  },
} satisfies Writers;

type Method = (...values: unknown[]) => Promise<unknown>;

/**
 * Wraps the repositories: `note` hears of each change when it has been written, before it is
 * committed.
 */
export const noteChanges = (tx: Repositories, note: (changes: Changes) => void): Repositories => {
  const all: Record<string, Readonly<Record<string, Method>>> = { ...(tx as object) };
  for (const [group, methods] of [...Object.values(writers), ofManyTables].flatMap(Object.entries<object>)) {
    const given = all[group];
    const noted = Object.entries(methods as unknown as Readonly<Record<string, (...values: unknown[]) => Changes>>).map(
      ([name, changesOf]): [string, Method] => [
        name,
        async (...values) => {
          const answer = await given?.[name]?.(...values);
          const changes = changesOf(...values);
          if (Object.keys(changes).length > 0) note(changes);
          return answer;
        },
      ],
    );
    all[group] = { ...given, ...Object.fromEntries(noted) };
  }
  return all as unknown as Repositories;
};
