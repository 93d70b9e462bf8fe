// What people are told about external key stores and about the requests that their endpoints refuse
// or answer late.

import type { Condition } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { XksLatency } from '../requests/xks-latency.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import type { NotificationSource } from './watch.ts';

/**
 * The share of an hour's requests that may take longer than what the cloud key service calls slow.
 */
const slowShare = 0.01;
const minuteMs = 60_000;

export const keyStoreSources = (
  { read, clock }: Pick<Ports['store'], 'read'> & Pick<Ports, 'clock'>,
  latency: Pick<XksLatency, 'lastHour'>,
): readonly NotificationSource[] => {
  const keyStores = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    for await (const { id, name, tenantId, connection } of each(
      (window) => read.externalKeyStores.list(everyTenant, window),
      byId,
      fewAtOnce,
    ))
      if (connection.since !== null && (connection.state === 'DISCONNECTED' || connection.state === 'FAILED'))
        found.push({
          kind: 'key-store.disconnected',
          tenantId,
          subject: { kind: 'external-key-store', id, name },
          harmAt: connection.since,
          details: { state: connection.state, errorCode: connection.errorCode },
        });
    return found;
  };

  const failing = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const enough = 10;
    for await (const { id, name, tenantId, state, integrity } of each(
      (window) => read.endpoints.list(everyTenant, window),
      byId,
      fewAtOnce,
    )) {
      const about = { tenantId, subject: { kind: 'endpoint', id, name }, harmAt: null } as const;
      if (integrity !== 'ok') found.push({ kind: 'endpoint.tampered', ...about, details: {} });
      if (state !== 'enabled') continue;
      const hour = (await latency.lastHour([id])).get(id);
      if (hour !== undefined && hour.over250Ms > 0)
        found.push({ kind: 'endpoint.late', ...about, details: { late: hour.over250Ms, requests: hour.requests } });
      else if (hour !== undefined && hour.over100Ms > hour.requests * slowShare)
        found.push({ kind: 'endpoint.slow', ...about, details: { slow: hour.over100Ms, requests: hour.requests } });
      const filter = { endpointId: id, result: 'refused', from: clock.now() - 5 * minuteMs } as const;
      const { items } = await read.requests.search(everyTenant, filter, { limit: enough });
      if (items.length < enough) continue;
      const errors = items.map(({ errorName }) => errorName ?? 'unknown');
      const count = (error: string): number => errors.filter((each) => each === error).length;
      const [mostly = 'unknown'] = [...new Set(errors)].sort((a, b) => count(b) - count(a));
      found.push({
        kind: 'endpoint.failing',
        ...about,
        details: { mostly },
      });
    }
    return found;
  };

  return [
    { about: 'external key stores', kinds: ['key-store.disconnected'], every: 'minute', look: keyStores },
    {
      about: 'requests of endpoints',
      kinds: ['endpoint.failing', 'endpoint.late', 'endpoint.slow', 'endpoint.tampered'],
      every: 'minute',
      look: failing,
    },
  ];
};
