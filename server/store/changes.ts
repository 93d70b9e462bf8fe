// What a unit of work changes that other nodes must know, noted where it is written, so that no operation can omit it: what nodes keep in memory, and
// that an erasure run is due. What is read from the store at each use (tokens, other settings, the logs) is not noted.

import { serviceTenantId } from '../base/ids.ts';
import { type Changes, rotationSetting } from '../domain/changes.ts';
import type { Repositories } from '../ports/store.ts';

type Writers = {
  readonly [G in keyof Repositories]?: {
    readonly [M in keyof Repositories[G]]?: Repositories[G][M] extends (...values: infer V) => Promise<unknown>
      ? (...values: V) => Changes
      : never;
  };
};

/** Each method that changes what is kept in memory. */
const writers = {
  keks: {
    insert: () => ({ keks: true }),
    remove: () => ({ keks: true }),
  },
  // The service's own keys are in memory, too.
  records: {
    put: ({ tenantId }) => (tenantId === serviceTenantId ? { keks: true } : {}),
    wipe: ({ tenantId }) => (tenantId === serviceTenantId ? { keks: true } : {}),
  },
  tenants: {
    insert: ({ id }) => ({ tenants: [id] }),
    update: ({ id }) => ({ tenants: [id] }),
  },
  tenantRows: {
    put: () => ({ everything: true }),
    place: (places) => ({ objects: places.map(({ handle }) => handle), keys: places.map(({ id }) => id) }),
  },
  decisions: {
    set: (name, value) => (name === rotationSetting && value !== null ? { destroyed: true } : {}),
  },
  vaults: {
    insert: ({ id }) => ({ vaults: [id] }),
    update: ({ id }) => ({ vaults: [id] }),
  },
  keys: {
    update: ({ id, state, unrecoverableAt }) => ({
      keys: [id],
      ...(state === 'destroyed' && unrecoverableAt === null ? { destroyed: true } : {}),
    }),
  },
  // What waited for the file is concluded by the node that runs erasure runs.
  outsideCopies: {
    update: ({ destroyedAt }) => (destroyedAt === null ? {} : { destroyed: true }),
  },
  applications: {
    insert: ({ id }) => ({ applications: [id] }),
    update: ({ id }) => ({ applications: [id] }),
  },
  accessGuids: {
    insert: ({ applicationId }) => ({ applications: [applicationId] }),
    update: ({ applicationId }) => ({ applications: [applicationId] }),
  },
  objects: {
    insert: ({ handle }) => ({ objects: [handle] }),
    update: ({ handle, contentReplacedAt }) => ({
      objects: [handle],
      ...(contentReplacedAt === null ? {} : { destroyed: true }),
    }),
    destroy: (handle) => ({ objects: [handle], destroyed: true }),
  },
  endpoints: {
    insert: ({ id }) => ({ endpoints: [id] }),
    update: ({ id }) => ({ endpoints: [id] }),
    insertCredential: (_tenantId, { endpointId }) => ({ endpoints: [endpointId] }),
    removeCredential: (id) => ({ credentials: [id] }),
  },
} satisfies Writers;

type Method = (...values: unknown[]) => Promise<unknown>;

/** The same repositories; `note` hears of each change when it has been written, before it is committed. */
export const noteChanges = (tx: Repositories, note: (changes: Changes) => void): Repositories => ({
  ...tx,
  ...Object.fromEntries(
    Object.entries(writers).map(([group, methods]) => {
      const given = tx[group as keyof Repositories] as unknown as Readonly<Record<string, Method>>;
      const noted = Object.entries(
        methods as unknown as Readonly<Record<string, (...values: unknown[]) => Changes>>,
      ).map(([name, changesOf]): [string, Method] => [
        name,
        async (...values) => {
          const answer = await given[name]?.(...values);
          const changes = changesOf(...values);
          if (Object.keys(changes).length > 0) note(changes);
          return answer;
        },
      ]);
      return [group, { ...given, ...Object.fromEntries(noted) }];
    }),
  ),
});
