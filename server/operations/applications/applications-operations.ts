// What can be done with TDE groups and applications.

import type { CompatibilitySwitch } from '../../base/compatibility-switches.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type {
  AccessGuid,
  ApplicationCallers,
  ApplicationMove,
  Instance,
  TdeApplication,
  TdeGroup,
} from '../../domain/tde.ts';
import type { DryRun } from '../approvals/approvals-operations.ts';

export interface TdeGroupOperations {
  /** Makes the group and its vault. */
  create(actor: TenantActor, input: { readonly name: string }): Promise<TdeGroup>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<TdeGroup>>;
  get(actor: TenantActor, id: string): Promise<TdeGroup>;
  /**
   * Renames the group, and its vault with it. 'conflict' when another group has the name. Under a
   * rule of the vault, whatever actions it names, others must agree: `ApprovalNeeded`.
   */
  rename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<TdeGroup>;
  planRename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<DryRun>;
}

/** An access_guid, shown this once: keep the text short-lived and out of logs. */
export interface IssuedAccessGuid {
  readonly record: AccessGuid;
  /** The bearer credential: `access_token` in pkcs11.toml. */
  readonly accessGuid: string;
  /** `server_url` in pkcs11.toml; embeds the access_guid and the application's app_id. */
  readonly serverUrl: string;
  /**
   * The certificate (PEM) that the database host has to trust; null: that of a public or a
   * separately installed authority.
   */
  readonly authority: string | null;
}

export interface ApplicationOperations {
  register(
    actor: TenantActor,
    /** `appId` defaults to the name when that fits `appIdPattern`, else 'default'. */
    input: { readonly name: string; readonly groupId: string; readonly appId?: string | undefined },
  ): Promise<IssuedAccessGuid & { readonly application: TdeApplication }>;
  list(
    actor: TenantActor,
    query: PageRequest & { readonly groupId?: string | undefined },
  ): Promise<Page<TdeApplication>>;
  get(actor: TenantActor, id: string): Promise<TdeApplication>;
  enable(actor: TenantActor, id: string): Promise<TdeApplication>;
  disable(actor: TenantActor, id: string): Promise<TdeApplication>;
  /** Changes the name; the app_id stays. 'conflict' when another application has the name. */
  rename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<TdeApplication>;
  /** Turns these compatibility switches on and all others off. */
  setCompatibility(actor: TenantActor, id: string, switches: readonly CompatibilitySwitch[]): Promise<TdeApplication>;
  /**
   * Replaces where its credentials may be used from. 'conflict' where the listener asks for no
   * client certificates.
   */
  setCallers(actor: TenantActor, id: string, callers: ApplicationCallers): Promise<TdeApplication>;
  /** What `move` would mean, and whose agreement it needs. */
  planMove(actor: TenantActor, id: string, groupId: string): Promise<ApplicationMove>;
  moveNeeds(actor: TenantActor, id: string, groupId: string): Promise<DryRun>;
  /**
   * Moves it with its objects. From the next request on, it cannot use the objects of its old
   * group.
   */
  move(
    actor: TenantActor,
    id: string,
    groupId: string,
  ): Promise<{ readonly application: TdeApplication; readonly move: ApplicationMove }>;
  /**
   * Issues a second access_guid; both are valid until `removeAccessGuid`. With two live ones:
   * 'conflict'.
   */
  rotateAccessGuid(actor: TenantActor, id: string): Promise<IssuedAccessGuid>;
  /** Live and removed ones, newest first. */
  accessGuids(actor: TenantActor, id: string): Promise<readonly AccessGuid[]>;
  /** The last live one is not removed ('conflict'): disable the application instead. */
  removeAccessGuid(actor: TenantActor, id: string, accessGuidId: string): Promise<AccessGuid>;
  /** Latest use first. */
  instances(actor: TenantActor, id: string): Promise<readonly Instance[]>;
}
