// Who used what, at the rate of the data path: kept in memory, written in batches. Only an
// instance's first use is written at once.

import type { Actor } from '../domain/actor.ts';
import type { AuditDetails } from '../domain/audit-event.ts';
import type { TdeApplication } from '../domain/tde.ts';

export interface InstanceUse {
  readonly application: TdeApplication;
  readonly accessGuidId: string;
  readonly appId: string;
  readonly host: string;
  readonly process: string;
  readonly osUser: string;
  readonly library: string;
  readonly agent: string;
  readonly pid: number;
}

export interface Denial {
  readonly actor: Actor;
  readonly tenantId: string;
  readonly subject: { readonly kind: 'key' | 'object'; readonly id: string };
  readonly details: AuditDetails<'key.denied'> & {
    readonly applicationId: string;
    readonly label: string;
    readonly operation: string;
    readonly reason: string;
  };
}

export interface UsageLog {
  /** A request by an instance. Resolves when a first use has been recorded; never throws. */
  seen(use: InstanceUse, requestId: string, peer: string | null): Promise<void>;
  /**
   * A use of a key by an application; goes into last-use times and the audit summary of the minute.
   */
  used(application: TdeApplication, keyId: string, operation: string, succeeded: boolean): void;
  /**
   * The first use of a new key on which data may come to depend: in the store when it resolves,
   * because any node may be asked to withdraw the request that created the key. Throws where the
   * key is destroyed, or the store takes no change.
   */
  first(key: { readonly id: string; readonly tenantId: string }): Promise<void>;
  /** A credential that was not valid; `of`: the application that it belongs or belonged to. */
  refused(
    channel: 'tde' | 'api' | 'xks' | 'metrics',
    reason: string,
    of?: { readonly application: Pick<TdeApplication, 'id' | 'name' | 'tenantId'>; readonly requestId: string },
  ): void;
  /**
   * A use that policy refused. The first of a kind (application, label, operation, reason) is
   * recorded at once, before this resolves; repeats are counted and recorded ever more rarely.
   * Never throws.
   */
  denied(denial: Denial): Promise<void>;
  /** A use of an administrator token. */
  tokenUsed(tokenId: string): void;
  /** Writes what is due; `all` also what could wait. */
  flush(all: boolean): Promise<void>;
}
