// A tenant with one of everything for the tests of insiders, under dual control or not, and a
// subject of its own for each operation: made by the service itself, so that what an insider then
// does is all that is compared.

import { randomBytes } from 'node:crypto';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import type { Grant, Role } from '../../server/domain/access.ts';
import type { TenantActor } from '../../server/domain/actor.ts';
import type { NewGrant } from '../../server/operations/index.ts';
import { administrator, instance, masterKey, type OpenedService } from './open-service.ts';
import { everything } from './people.ts';
import { makeRecoveryKey } from './snapshot-files.ts';
import { actorIn, answerOpening, type SnapshotHand } from './snapshots.ts';

export const rule = {
  required: 1,
  approvers: null,
  actions: ['destroy', 'export', 'restore'],
  databases: 'refused',
} as const;
export const settings = { operatorProbes: true, rate: null, clientCertificate: null, rules: [] };

let made = 0;
const fresh = (what: string): string => {
  made += 1;
  return `${what}-${made}`;
};

export interface Application {
  readonly id: string;
  readonly groupId: string;
  readonly accessGuidId: string;
  readonly masterKeyId: string;
  readonly name: string;
}
export interface World {
  readonly opened: OpenedService;
  readonly hand: SnapshotHand;
  readonly tenantId: string;
  /** Its vaults are under a rule. */
  readonly governed: boolean;
  readonly actor: TenantActor;
  /** One of them, who may request operations that need approval. */
  readonly requester: TenantActor;
  readonly ids: {
    readonly vault: string;
    readonly key: string;
    readonly application: Application;
    readonly endpoint: string;
    readonly credential: string;
    readonly keyStore: string;
    readonly run: string;
    readonly diagnosis: string;
    readonly token: string;
    readonly user: string;
    readonly snapshot: string;
    readonly notification: string | undefined;
    readonly approval: string | undefined;
  };
}
type Place = Pick<World, 'opened' | 'governed' | 'actor'>;

export const makeVault = async ({ opened, governed, actor }: Place): Promise<string> => {
  const { id } = await opened.operations.vaults.create(actor, { name: fresh('vault') });
  if (governed) await opened.operations.dualControl.change(actor, id, rule);
  return id;
};
export const makeKey = async ({ opened, actor }: Pick<Place, 'opened' | 'actor'>, vaultId: string): Promise<string> =>
  (await opened.operations.keys.create(actor, { name: fresh('key'), vaultId })).id;
export const makeGroup = async ({ opened, governed, actor }: Place): Promise<string> => {
  const { id, vaultId } = await opened.operations.tdeGroups.create(actor, { name: fresh('group') });
  if (governed) await opened.operations.dualControl.change(actor, vaultId, rule);
  return id;
};
export const makeApplication = async (place: Place): Promise<Application> => {
  const { operations } = place.opened;
  const name = fresh('application');
  const groupId = await makeGroup(place);
  const { application, record, accessGuid } = await operations.applications.register(place.actor, { name, groupId });
  const { appId } = application;
  const caller = await operations.tde.authenticate({ accessGuid, appId, instance, requestId: 'call-1', peer: null });
  const { id: masterKeyId } = await operations.tde.generateKey(caller, masterKey(name));
  return { id: application.id, groupId, accessGuidId: record.id, masterKeyId, name };
};
export const makeEndpoint = async (place: Pick<Place, 'opened' | 'actor'>, vaultId: string): Promise<string> => {
  const keyId = await makeKey(place, vaultId);
  return (await place.opened.operations.endpoints.create(place.actor, { name: fresh('endpoint'), vaultId, keyId })).id;
};
export const addCredential = async (
  { opened, actor }: Pick<Place, 'opened' | 'actor'>,
  id: string,
): Promise<string> => {
  const { credential, secretAccessKey } = await opened.operations.endpoints.addCredential(actor, id);
  secretAccessKey.fill(0);
  return credential.id;
};
export const makeKeyStore = async ({ opened, actor }: Pick<Place, 'opened' | 'actor'>, endpointId: string) => {
  const customKeyStoreId = `cks-${randomBytes(8).toString('hex')}`;
  const given = { name: fresh('store'), customKeyStoreId, region: 'eu-central-1', endpointId };
  return (await opened.operations.externalKeyStores.register(actor, given)).id;
};
/** A token of these roles, in the tenant of the actor or, without one, everywhere. */
export const makeToken = async (
  opened: OpenedService,
  grants: readonly NewGrant[],
  tenantId: string | null = null,
): Promise<{ readonly id: string; readonly token: string }> => {
  const actor = tenantId === null ? administrator : actorIn(tenantId);
  const glass = grants.some(({ role }) => role === 'break-glass');
  const { record, token } = await opened.operations.tokens.create(actor, 'the service', {
    name: fresh('token'),
    grants,
    ...(glass ? { expiresAt: Date.now() + 3_600_000 } : {}),
  });
  return { id: record.id, token };
};
export const makeUser = async (
  opened: OpenedService,
  role: Role,
  tenantId: string | null,
): Promise<{ readonly id: string; readonly name: string; readonly invitation: string }> => {
  const actor = tenantId === null ? administrator : actorIn(tenantId);
  const grants: Grant[] = [{ role, scope: null, tenantId }];
  const { user, invitation } = await opened.operations.users.create(actor, everything, { name: fresh('user'), grants });
  return { id: user.id, name: user.name, invitation: invitation?.token ?? '' };
};
export const newRecoveryKey = (): string => formatRecoveryKey(makeRecoveryKey().publicKey);

/** `governed`: every vault is under a rule that requires one approver, who must exist before. */
export const makeWorld = async (opened: OpenedService, hand: SnapshotHand, governed: boolean): Promise<World> => {
  const { operations, service } = opened;
  const { id: tenantId } = await operations.tenants.create(administrator, { name: fresh('tenant') });
  const actor = actorIn(tenantId);
  const place: Place = { opened, governed, actor };
  const vault = await makeVault(place);
  const key = await makeKey(place, vault);
  const application = await makeApplication(place);
  const endpoint = await makeEndpoint(place, vault);
  const credential = await addCredential(place, endpoint);
  const run = await operations.runbooks.start(actor, application.id, {
    runbook: 'rotate',
    release: '19c',
    containers: 'cdb',
  });
  const diagnosis = await operations.diagnostics.run(actor, endpoint, { callerTime: null, cloud: {} });
  const requester = { ...actor, id: (await makeToken(opened, [{ role: 'key-manager', scope: null }], tenantId)).id };
  if (governed)
    await operations.keys.softDelete(requester, await makeKey(place, await makeVault(place))).catch(() => undefined);
  const [approval] = (await operations.approvals.list(actor, { limit: 1 })).items;
  await service.checkNotifications();
  const [notification] = (await operations.notifications.list(actor, { limit: 1 })).items;
  return {
    opened,
    hand,
    tenantId,
    governed,
    actor,
    requester,
    ids: {
      vault,
      key,
      application,
      endpoint,
      credential,
      keyStore: await makeKeyStore(place, endpoint),
      run: run.id,
      diagnosis: diagnosis.id,
      token: (await makeToken(opened, [{ role: 'auditor', scope: null }], tenantId)).id,
      user: (await makeUser(opened, 'auditor', tenantId)).id,
      snapshot: await hand.make(tenantId),
      notification: notification?.id,
      approval: approval?.id,
    },
  };
};

export { answerOpening, fresh };
