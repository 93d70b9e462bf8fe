// Keys: reading. Destroyed ones are shown too.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Key, ShownKey } from '../../domain/key.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Window } from '../../ports/window.ts';
import { copiesOf } from '../copies/copies-of.ts';
import { showKey } from '../shared/find.ts';
import { byId, mostAtOnce, pageOf, withTotal } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { findKeyUse } from './key-use.ts';
import type { KeyOperations } from './keys-operations.ts';
import { asShown, showKeys } from './shown-keys.ts';

/** The cursor of a list that is in the order of last uses. */
const useCursor = ({ lastUsedAt, id }: Key): string => `${lastUsedAt}.${id}`;

interface ReadPage {
  readonly read: readonly Key[];
  readonly shown: readonly ShownKey[];
}
async function* pagesOf(list: (window: Window) => Promise<ReadPage>): AsyncGenerator<readonly ShownKey[]> {
  for (let after: string | undefined; ; ) {
    const { read, shown } = await list({ after, limit: mostAtOnce });
    // A page without rows is yielded, too: between two pages, the caller's right to the file is
    // checked.
    yield shown;
    if (read.length < mostAtOnce) return;
    after = read.at(-1)?.id;
  }
}

export const readKeys = ({
  store,
  usage,
}: Pick<Ports, 'store' | 'usage'>): Pick<KeyOperations, 'list' | 'export' | 'get' | 'versions' | 'use'> => ({
  list: async ({ tenantId }, query) => {
    const isByUse = query.usedAfter !== undefined || query.usedBefore !== undefined;
    if (isByUse && query.after !== undefined && !/^[0-9]{1,15}\.[0-9a-z-]{1,36}$/.test(query.after))
      throw new ServiceError('validation', 'after must be the next of a previous page');
    const cursor = isByUse ? useCursor : byId;
    const page = await pageOf(query, (window) => store.read.keys.list(tenantId, query, window), cursor);
    const counted = await withTotal(query, page, (most) => store.read.keys.count(tenantId, query, most));
    return { ...counted, items: await showKeys(store.read, page.items) };
  },
  export: async (actor, filter, format) => {
    // What this node still has in memory of uses: a file of unused keys has none of those.
    await usage.flush(false);
    const given = Object.entries(filter).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    await store.write((tx) =>
      recordEvent(
        tx,
        'key-inventory.exported',
        actor,
        about('service', { id: 'keys', tenantId: actor.reach === everyTenant ? serviceTenantId : actor.reach }),
        { format, filter: Object.fromEntries(given) },
      ),
    );
    // Newest first whatever is asked for: a key that is used meanwhile keeps its place.
    const { usedAfter, usedBefore, ...others } = filter;
    const isWanted = ({ lastUsedAt }: Key): boolean =>
      (usedAfter === undefined && usedBefore === undefined) ||
      (lastUsedAt !== null && lastUsedAt >= (usedAfter ?? 0) && lastUsedAt < (usedBefore ?? Number.POSITIVE_INFINITY));
    return pagesOf(async (window) => {
      const found = await store.read.keys.list(actor.reach, others, window);
      return { read: found, shown: await showKeys(store.read, found.filter(isWanted)) };
    });
  },
  get: async ({ tenantId }, id) => asShown(store.read, await showKey(store.read, tenantId, id)),
  versions: async ({ tenantId }, id) => {
    await showKey(store.read, tenantId, id);
    return store.read.keys.versions(id);
  },
  use: async ({ tenantId, reach }, id) => {
    await usage.flush(false);
    const key = await showKey(store.read, tenantId, id);
    return { ...(await findKeyUse(store.read, key)), copies: await copiesOf(store.read, key, reach) };
  },
});
