// Files that left the service with its keys, for fronts and the command.

import type { TenantActor } from '../../domain/actor.ts';
import type { OutsideCopy } from '../../domain/copies.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { OutsideCopyFilter } from '../../ports/outside-copies.ts';

export interface CopyOperations {
  /**
   * Copies of the tenant acted in, or of all tenants, newest first. Backups of the whole service
   * belong to no tenant.
   */
  list(actor: TenantActor, query: PageRequest & OutsideCopyFilter): Promise<Page<OutsideCopy>>;
  get(actor: TenantActor, id: string): Promise<OutsideCopy>;
  /**
   * An operator states that the file is destroyed, with every copy of it. `andOlder`: older ones of
   * its kind and tenant, too. Cannot be undone.
   */
  confirmDestroyed(actor: TenantActor, id: string, andOlder: boolean): Promise<readonly OutsideCopy[]>;
}
