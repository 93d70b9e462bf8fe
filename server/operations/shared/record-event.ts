// The audit record of what an operation does, in the same transaction.

import { serviceTenantId } from '../../base/ids.ts';
import type { Actor } from '../../domain/actor.ts';
import type { AuditDetails, AuditKind, SubjectKind } from '../../domain/audit-event.ts';
import type { Repositories } from '../../ports/store.ts';

interface Subject {
  readonly tenantId: string;
  readonly subject: { readonly kind: SubjectKind; readonly id: string };
}

/** The record belongs to the service if the subject has no tenant. */
export const about = (
  kind: SubjectKind,
  { id, tenantId }: { readonly id: string; readonly tenantId: string | null },
): Subject => ({ tenantId: tenantId ?? serviceTenantId, subject: { kind, id } });

/** The service itself, or a part of it. */
export const aboutService = (id = 'service'): Subject => about('service', { id, tenantId: null });

/** Returns the number of records in the log after this one. */
export const recordEvent = <K extends AuditKind>(
  tx: Pick<Repositories, 'audit'>,
  kind: K,
  actor: Actor,
  subject: Subject,
  details: AuditDetails<K>,
): Promise<number> => tx.audit.append({ kind, actor, ...subject, details });
