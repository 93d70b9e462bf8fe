// TDE groups: reading.

import type { Ports } from '../../ports/ports.ts';
import { showGroup } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import type { TdeGroupOperations } from './applications-operations.ts';

export const readGroups = ({ store }: Pick<Ports, 'store'>): Pick<TdeGroupOperations, 'list' | 'get'> => ({
  list: ({ tenantId }, query) => pageOf(query, (window) => store.read.groups.list(tenantId, window), byId),
  get: ({ tenantId }, id) => showGroup(store.read, tenantId, id),
});
