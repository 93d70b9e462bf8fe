// Records of the audit log that are shown as notifications, and how far back they are.

import type { AuditEvent, AuditKind } from '../../domain/audit-event.ts';
import { dayMs } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { each } from '../shared/paging.ts';

/** How long it is shown that an administrator, or a certificate, was created on the host. */
const createdDays = 30;

/**
 * Rows that one statement reads: few enough that a request that arrives in the meantime notices no
 * delay.
 */
const pageSize = 50;

/**
 * The records of a kind since then, newest first. All of the kind are read, by their index: there
 * are few, and the times of a clock that was set back are in no order.
 */
export async function* recentRecords(
  { audit }: Pick<Repositories, 'audit'>,
  kind: AuditKind,
  now: number,
): AsyncGenerator<AuditEvent> {
  const all = each(
    (window) => audit.list(everyTenant, { kind, order: 'newest' }, window),
    ({ sequence }) => String(sequence),
    pageSize,
  );
  for await (const event of all) if (event.at >= now - createdDays * dayMs) yield event;
}
