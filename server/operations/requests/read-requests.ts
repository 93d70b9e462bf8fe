// The request log: search, export, and the way from a CloudTrail event to our record of it.

import { isId, serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { findKmsRequestIds } from '../../domain/cloud-trail.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { RequestFilter } from '../../domain/request-log.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { checkSequenceCursor, limitOf } from '../shared/paging.ts';
import { verifyRequests } from './request-minutes.ts';
import type { LoggedRequest, RequestOperations } from './requests-operations.ts';

/**
 * Our request ids begin with the time at which they were made; their record is written when the
 * answer is.
 */
const longestRequestMs = 600_000;
const verifiedByDefaultMs = 3_600_000;
/** Few enough that no request waits long behind one. */
const exportPage = 200;

const narrowed = (filter: RequestFilter): RequestFilter => {
  const { requestId, from, to } = filter;
  if (requestId === undefined || !isId(requestId)) return filter;
  const madeAt = Number.parseInt(requestId.replaceAll('-', '').slice(0, 12), 16);
  return {
    ...filter,
    // A clock that is set back while a request is worked on leaves its record a little earlier than
    // its id.
    from: Math.max(from ?? 0, madeAt - longestRequestMs),
    to: Math.min(to ?? Number.MAX_SAFE_INTEGER, madeAt + longestRequestMs),
  };
};

export const readRequests = ({ store, clock }: Pick<Ports, 'store' | 'clock'>): RequestOperations => {
  async function* pages(tenant: TenantScope, filter: RequestFilter): AsyncGenerator<readonly LoggedRequest[]> {
    let after: string | undefined;
    for (;;) {
      const { items, next } = await store.read.requests.search(tenant, narrowed(filter), {
        after,
        limit: exportPage,
      });
      if (items.length > 0) yield items;
      if (next === null) return;
      after = next;
    }
  }

  return {
    search: async ({ reach }, { after, limit, ...filter }) => {
      checkSequenceCursor({ after });
      return store.read.requests.search(reach, narrowed(filter), { after, limit: limitOf({ limit }) });
    },

    export: async (actor, filter, format) => {
      const { endpointId, ...others } = filter;
      const given = Object.entries(others).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value] as const],
      );
      await store.write((tx) =>
        tx.audit.append({
          kind: 'request-log.exported',
          actor,
          tenantId: actor.reach === everyTenant ? serviceTenantId : actor.reach,
          subject:
            typeof endpointId === 'string'
              ? { kind: 'endpoint', id: endpointId }
              : { kind: 'service', id: 'request-log' },
          details: { format, filter: Object.fromEntries(given) },
        }),
      );
      return pages(actor.reach, filter);
    },

    verify: async (_actor, span) => {
      const to = span.to ?? clock.now();
      const from = span.from ?? to - verifiedByDefaultMs;
      if (from >= to)
        throw new ServiceError('validation', 'the end of the time range is before its beginning', {
          hint: 'from must be earlier than to',
        });
      return verifyRequests(store.read, { from, to });
    },

    correlate: async ({ reach }, text) => {
      const kmsRequestIds = findKmsRequestIds(text);
      if (kmsRequestIds.length === 0)
        throw new ServiceError('validation', 'the text does not contain a request id', {
          hint: 'paste the whole CloudTrail event, or the value of its requestID',
        });
      const items: LoggedRequest[] = [];
      for (const kmsRequestId of kmsRequestIds) {
        const limit = largestPageSize - items.length;
        if (limit > 0) items.push(...(await store.read.requests.search(reach, { kmsRequestId }, { limit })).items);
      }
      return { kmsRequestIds, items, oldest: (await store.read.requests.oldest()) ?? null };
    },
  };
};
