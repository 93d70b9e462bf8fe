// External key stores: registering them, and watching their connection: by a probe that plays the
// cloud's part, and by the cloud's own word where it can be asked.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { serviceActor } from '../../domain/actor.ts';
import { xksProxyUriPath } from '../../domain/endpoint.ts';
import { type Connection, type ExternalKeyStore, neverLooked } from '../../domain/external-key-store.ts';
import type { TenantScope } from '../../domain/tenant.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { findEndpoint } from '../shared/find.ts';
import type { JobBoard } from '../shared/job-board.ts';
import { checkName } from '../shared/names.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ExternalKeyStoreOperations } from './endpoints-operations.ts';

export type LookPorts = Pick<Ports, 'store' | 'clock' | 'keyStoreProbe' | 'cloud'>;
type Needs = LookPorts & Pick<Ports, 'log'>;

const find = async (tx: Repositories, tenant: TenantScope, id: string): Promise<ExternalKeyStore> => {
  const store = await tx.externalKeyStores.get(tenant, id);
  if (store === undefined) throw new ServiceError('not-found', 'external key store not found');
  return store;
};

/** Looks once, keeps what was seen, and audits a change of state. */
export const lookAtKeyStore =
  ({ store, clock, keyStoreProbe, cloud }: LookPorts) =>
  async (known: ExternalKeyStore): Promise<ExternalKeyStore> => {
    if (known.integrity !== 'ok')
      throw new ServiceError('key-tampered', 'the stored external key store was changed from outside');
    const endpoint = await store.read.endpoints.get(known.tenantId, known.endpointId);
    const told =
      endpoint === undefined
        ? undefined
        : await cloud?.describe({ ...known, uriPath: xksProxyUriPath(endpoint.prefix) });
    const report = told ?? (await keyStoreProbe.probe(known.endpointId));
    return store.write(async (tx) => {
      const before = await find(tx, known.tenantId, known.id);
      const now = clock.now();
      const same =
        before.connection.state === report.state &&
        before.connection.errorCode === report.errorCode &&
        before.connection.since !== null;
      const after: Connection = {
        state: report.state,
        errorCode: report.errorCode,
        detail: report.detail,
        source: told === undefined ? 'probe' : 'cloud',
        since: same ? before.connection.since : now,
        checkedAt: now,
      };
      await tx.externalKeyStores.setConnection(known.id, after);
      if (!same)
        await recordEvent(
          tx,
          'external-key-store.state-changed',
          serviceActor('key-store-watch'),
          about('external-key-store', before),
          {
            name: before.name,
            from: before.connection.since === null ? null : before.connection.state,
            to: after.state,
            errorCode: after.errorCode,
            source: after.source,
          },
        );
      return { ...before, connection: after };
    });
  };

export const externalKeyStores = (ports: Needs): ExternalKeyStoreOperations => {
  const { store, clock } = ports;
  const lookAt = lookAtKeyStore(ports);
  return {
    register: async (actor, { name, customKeyStoreId, region, endpointId }) => {
      checkName(name);
      return store.write(async (tx) => {
        const endpoint = await findEndpoint(tx, actor.tenantId, endpointId);
        if (endpoint.state === 'deleted') throw new ServiceError('conflict', 'the endpoint is deleted');
        if ((await tx.externalKeyStores.findByCloudId(actor.tenantId, customKeyStoreId, region)) !== undefined)
          throw new ServiceError('conflict', 'this custom key store is already registered');
        const now = clock.now();
        const made: ExternalKeyStore = {
          id: newId(now),
          tenantId: endpoint.tenantId,
          name,
          customKeyStoreId,
          region,
          endpointId,
          createdAt: now,
          connection: neverLooked,
          integrity: 'ok',
        };
        await tx.externalKeyStores.insert(made);
        await recordEvent(tx, 'external-key-store.registered', actor, about('external-key-store', made), {
          name,
          customKeyStoreId,
          region,
          endpointId,
        });
        return made;
      });
    },
    list: ({ tenantId }, query) => pageOf(query, (window) => store.read.externalKeyStores.list(tenantId, window), byId),
    get: ({ tenantId }, id) => find(store.read, tenantId, id),
    probe: async ({ tenantId }, id) => lookAt(await find(store.read, tenantId, id)),
    remove: async (actor, id) =>
      store.write(async (tx) => {
        const removed = await find(tx, actor.tenantId, id);
        await tx.externalKeyStores.remove(id);
        await recordEvent(tx, 'external-key-store.removed', actor, about('external-key-store', removed), {
          name: removed.name,
          customKeyStoreId: removed.customKeyStoreId,
        });
        return removed;
      }),
  };
};

export interface KeyStoreWatch {
  start(): void;
  stop(): Promise<void>;
}

const pageSize = 1_000;
/** One that does not answer delays its own next check, and at most this part of the others. */
const atOnce = 8;

/** Checks every external key store, `everyMs` from one check to the next. */
export const createKeyStoreWatch = (
  ports: Needs & { readonly fleet: Pick<Fleet, 'perform'> },
  everyMs: number,
  board: Pick<JobBoard, 'add'>,
): KeyStoreWatch => {
  const { store, clock, log, fleet } = ports;
  const lookAt = lookAtKeyStore(ports);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;

  const wakeMs = Math.min(everyMs, 1000);
  const once = board.add('external key stores', { duty: 'key-stores', everyMs: wakeMs });
  const run = async (): Promise<void> => {
    const due = clock.now() - everyMs;
    for (;;) {
      const page = await store.read.externalKeyStores.listUnseenSince(due, pageSize);
      const waiting = [...page];
      const takeTurns = async (): Promise<void> => {
        for (let known = waiting.shift(); known !== undefined && !stopped; known = waiting.shift()) {
          const { id } = known;
          await lookAt(known).catch(async (error: unknown) => {
            log.error('an external key store could not be checked', { id, error });
            // Not again before its time.
            await store.write((tx) => tx.externalKeyStores.setLookedAt(id, clock.now()));
          });
        }
      };
      await Promise.all(Array.from({ length: atOnce }, takeTurns));
      if (stopped || page.length < pageSize) return;
    }
  };
  const next = (): void => {
    timer = setTimeout(() => {
      running = fleet
        .perform('key-stores', () => once(run))
        .then(() => undefined)
        .catch((error: unknown) => log.error('external key stores could not be checked', { error }))
        .finally(() => {
          if (!stopped) next();
        });
    }, wakeMs);
    timer.unref();
  };
  return {
    start: next,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
