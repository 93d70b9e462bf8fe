// The audit log: reading. Order is by sequence, never by time.

import type { Ports } from '../ports/ports.ts';
import type { AuditOperations } from './index.ts';
import { checkSequenceCursor, pageOf } from './paging.ts';

export const readAudit = ({ store }: Pick<Ports, 'store'>): AuditOperations => ({
  list: (_actor, query) => {
    checkSequenceCursor(query);
    return pageOf(
      query,
      (window) => store.read.audit.list({ ...query, order: query.order ?? 'newest' }, window),
      (event) => String(event.sequence),
    );
  },
});
