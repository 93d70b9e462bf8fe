// One request for each operation of the API, with a subject of its own: what a caller with every
// right would be given.

import { setTimeout } from 'node:timers/promises';
import {
  addCredential,
  answerOpening,
  fresh,
  makeApplication,
  makeEndpoint,
  makeGroup,
  makeKey,
  makeKeyStore,
  makeToken,
  makeUser,
  makeVault,
  newRecoveryKey,
  settings,
  type World,
} from './insider-world.ts';
import { administrator } from './open-service.ts';
import { samplePackage } from './package-shelf.ts';
import { everything } from './people.ts';
import { actorIn } from './snapshots.ts';

export interface Attempt {
  /** Values of the path's parameters, by their names. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: object;
  readonly file?: Buffer;
  /**
   * Statuses of those who may, when not one of 200 to 204: there is nothing to do it to, and
   * nothing is done.
   */
  readonly answers?: readonly number[];
  /** Where a role is given for one resource: this one. */
  readonly scope?: { readonly kind: 'application' | 'endpoint'; readonly id: string };
  /** The operation changes facts when it is carried out: the matrix fails if none changed. */
  readonly changes?: true;
  /** Under dual control it does not wait: no rule has a say. */
  readonly free?: true;
  /** Adds ids that those who may bring along (a request by the caller before). */
  readonly before?: (send: Send) => Promise<Partial<Attempt>>;
}
export type Send = (
  method: string,
  path: string,
  body?: object,
) => Promise<{ readonly status: number; readonly text: string }>;
type Prepare = (world: World) => Attempt | Promise<Attempt>;

const none = '01981d2c-7c1f-7b35-9a04-52a1be40c0de';
const at = (id: string, more: Partial<Attempt> = {}): Attempt => ({ path: { id }, ...more });
const scoped = (kind: 'application' | 'endpoint', id: string, more: Partial<Attempt> = {}): Attempt => ({
  path: kind === 'application' ? { id, applicationId: id } : { id },
  scope: { kind, id },
  ...more,
});
const changes = { changes: true } as const;

const application =
  (more: (application: World['ids']['application'], world: World) => Partial<Attempt> | Promise<Partial<Attempt>>) =>
  async (world: World): Promise<Attempt> => {
    const made = await makeApplication(world);
    const { path, ...rest } = await more(made, world);
    return scoped('application', made.id, { ...rest, path: { id: made.id, applicationId: made.id, ...path } });
  };
const endpoint =
  (more: (id: string, world: World) => Partial<Attempt> | Promise<Partial<Attempt>>) =>
  async (world: World): Promise<Attempt> => {
    const id = await makeEndpoint(world, world.ids.vault);
    const { path, ...rest } = await more(id, world);
    return scoped('endpoint', id, { ...rest, path: { id, ...path } });
  };
const ofWorld =
  (more: Partial<Attempt> = {}): Prepare =>
  ({ ids }) =>
    scoped('application', ids.application.id, {
      ...more,
      path: {
        id: ids.application.id,
        applicationId: ids.application.id,
        keyId: ids.application.masterKeyId,
        ...more.path,
      },
    });
const ofEndpoint =
  (more: Partial<Attempt> = {}): Prepare =>
  ({ ids }) =>
    scoped('endpoint', ids.endpoint, { ...more, path: { id: ids.endpoint, ...more.path } });
const ofUser =
  (more: Partial<Attempt> = {}): Prepare =>
  async ({ opened, tenantId }) =>
    at((await makeUser(opened, 'auditor', tenantId)).id, more);
const ofTenant =
  (
    more: Partial<Attempt> | ((name: string) => Partial<Attempt>),
    prepare: (world: World, id: string) => Promise<unknown> = () => Promise.resolve(),
  ): Prepare =>
  async (world) => {
    const name = fresh('tenant');
    const { id } = await world.opened.operations.tenants.create(administrator, { name });
    const place = { ...world, actor: actorIn(id) };
    if (world.governed) await makeVault(place);
    await prepare(world, id);
    const extra = typeof more === 'function' ? more(name) : more;
    return at(id, extra);
  };
/**
 * For each service: a token of a requester and one of an approver. Both exist before every request.
 */
interface Pair {
  readonly requester: string;
  readonly approver: string;
}
const pairs = new WeakMap<World['opened'], Pair>();
export const setPair = (opened: World['opened'], pair: Pair): void => void pairs.set(opened, pair);

/** Past dual control. */
const deleted = async ({ opened, governed }: World, id: string): Promise<void> => {
  const { tenants, approvals } = opened.operations;
  const { requester = '', approver = '' } = pairs.get(opened) ?? {};
  const deletion = tenants.delete({ ...administrator, tenantId: id, id: requester }, id);
  if (!governed) {
    await deletion;
    return;
  }
  await deletion.catch(() => undefined);
  const [request] = (await approvals.list(actorIn(id), { limit: 1 })).items;
  await approvals.approve({ ...actorIn(id), id: approver }, request?.id ?? '', null);
};

/** A file that left the service, past dual control. */
const exportedCopy = async ({ opened, governed, hand, tenantId }: World): Promise<string> => {
  const { snapshots, approvals, copies } = opened.operations;
  const { requester = '', approver = '' } = pairs.get(opened) ?? {};
  const id = await hand.make(tenantId);
  const take = async (): Promise<void> => {
    for await (const _ of await snapshots.export({ ...administrator, id: requester }, id));
  };
  if (governed) {
    await take().catch(() => undefined);
    const [request] = (await approvals.list(actorIn(tenantId), { subjectId: id, limit: 1 })).items;
    await approvals.approve({ ...actorIn(tenantId), id: approver }, request?.id ?? '', null);
  }
  await take();
  return (await copies.list(administrator, { tenantId, limit: 1 })).items[0]?.id ?? none;
};

/** A snapshot of a tenant of its own that the caller begins to open. */
const withOpening: Prepare = ({ ids, ...given }) =>
  at(ids.snapshot, {
    body: { openingId: none, sealedKey: '' },
    before: async (send) => {
      const { opened, hand } = given;
      const tenant = await opened.operations.tenants.create(administrator, { name: fresh('tenant') });
      await makeVault({ ...given, actor: actorIn(tenant.id) });
      const id = await hand.make(tenant.id);
      const { text } = await send('post', `/api/snapshots/${id}/openings`, { recoveryKeyId: hand.recovery.id });
      return { path: { id }, body: answerOpening(JSON.parse(text), hand.recovery.key) };
    },
  });
const withRun = (more: Partial<Attempt>): Prepare =>
  application(async ({ id }, { opened, actor }) => {
    const variant = { runbook: 'rotate', release: '19c', containers: 'cdb' } as const;
    const run = await opened.operations.runbooks.start(actor, id, variant);
    return { ...more, path: { runId: run.id, step: run.steps[0]?.id ?? '' } };
  });
/**
 * Destructions and rotations of earlier attempts start erasure runs in the background, and a
 * rotation is refused until they have finished.
 */
const untilErased = async ({ opened }: World): Promise<Partial<Attempt>> => {
  while ((await opened.operations.status(administrator)).erasure.state !== 'idle') await setTimeout(20);
  return {};
};
/**
 * Without a rule nothing waits. The rule is set when the caller exists, because only users from
 * before can approve.
 */
const held: Prepare = (given) =>
  at(given.ids.approval ?? none, {
    body: {},
    ...(given.governed
      ? {
          ...changes,
          before: async () => {
            const key = await makeKey(given, await makeVault(given));
            await given.opened.operations.keys.softDelete(given.requester, key).catch(() => undefined);
            const { items } = await given.opened.operations.approvals.list(given.actor, { subjectId: key, limit: 1 });
            return { path: { id: items[0]?.id ?? '' } };
          },
        }
      : { answers: [404] }),
  });
/** A request that waits raises one. */
const notification: Prepare = ({ ids, governed }) => at(ids.notification ?? none, governed ? {} : { answers: [404] });
const scopeless =
  (read: (ids: World['ids']) => string): Prepare =>
  ({ ids }) =>
    at(read(ids));

/**
 * Prepares a call of each operation, by the name "group.operation". An operation without an entry
 * is called without a body: those whose effect is 'own', and lists.
 */
export const attempts: Readonly<Record<string, Prepare>> = {
  'tenants.create': () => ({ body: { name: fresh('tenant') } }),
  'tenants.get': ({ tenantId }) => at(tenantId),
  'tenants.rename': ofTenant((name) => ({ body: { name: `${name} renamed` }, ...changes })),
  'tenants.suspend': ofTenant(changes),
  'tenants.resume': ofTenant(changes, ({ opened }, id) => opened.operations.tenants.suspend(administrator, id)),
  'tenants.delete': ofTenant(changes),
  'tenants.restore': ofTenant(changes, deleted),
  'tenants.purge': ofTenant((name) => ({ body: { confirm: name }, ...changes }), deleted),
  'vaults.create': () => ({ body: { name: fresh('vault') }, ...changes }),
  'vaults.get': scopeless(({ vault }) => vault),
  'vaults.enable': async (given) => {
    const id = await makeVault(given);
    await given.opened.operations.vaults.disable(given.actor, id);
    return at(id, changes);
  },
  'vaults.disable': async (given) => at(await makeVault(given), changes),
  'vaults.delete': async (given) => at(await makeVault(given), changes),
  'vaults.rename': async (given) => at(await makeVault(given), { body: { name: fresh('renamed') }, ...changes }),
  'vaults.setProfile': async (given) => at(await makeVault(given), { body: { profile: 'high-security' } }),
  'vaults.dualControl': scopeless(({ vault }) => vault),
  'vaults.setDualControl': async (given) =>
    at(await makeVault(given), { body: { required: 1, actions: ['destroy'] }, ...changes }),
  'vaults.removeDualControl': async (given) => at(await makeVault(given), given.governed ? changes : {}),
  'keys.create': ({ ids }) => ({ body: { name: fresh('key'), vaultId: ids.vault }, ...changes }),
  'keys.get': scopeless(({ key }) => key),
  'keys.change': async (given) =>
    at(await makeKey(given, given.ids.vault), { body: { name: fresh('renamed'), tags: ['env=prod'] } }),
  'keys.versions': scopeless(({ key }) => key),
  'keys.use': scopeless(({ key }) => key),
  'keys.enable': async (given) => {
    const id = await makeKey(given, given.ids.vault);
    await given.opened.operations.keys.disable(given.actor, id);
    return at(id, changes);
  },
  'keys.disable': async (given) => at(await makeKey(given, given.ids.vault), changes),
  'keys.rotate': async (given) => at(await makeKey(given, given.ids.vault), changes),
  'keys.delete': async (given) => at(await makeKey(given, given.ids.vault), changes),
  'tdeGroups.create': () => ({ body: { name: fresh('group') }, ...changes }),
  'tdeGroups.rename': async (given) => at(await makeGroup(given), { body: { name: fresh('renamed') }, ...changes }),
  'tdeGroups.get': scopeless(({ application: { groupId } }) => groupId),
  'applications.register': async (given) => ({
    body: { name: fresh('application'), groupId: given.ids.application.groupId },
    ...changes,
  }),
  'applications.get': ofWorld(),
  'applications.enable': application(async ({ id }, { opened, actor }) => {
    await opened.operations.applications.disable(actor, id);
    return changes;
  }),
  'applications.disable': application(() => changes),
  'applications.rename': application(() => ({ body: { name: fresh('renamed') } })),
  'applications.setCallers': application(() => ({
    body: { networks: ['127.0.0.0/8', '::1'], certificates: [] },
    ...changes,
  })),
  'applications.setCompatibility': application(() => ({ body: { switches: ['sha1-signatures'] }, ...changes })),
  'applications.move': application(async ({ name }, given) => ({
    body: { groupId: await makeGroup({ ...given, governed: false }), confirm: name },
    ...changes,
  })),
  'applications.rotateAccessGuid': application(() => changes),
  'applications.accessGuids': ofWorld(),
  'applications.removeAccessGuid': application(async ({ id, accessGuidId }, { opened, actor }) => {
    await opened.operations.applications.rotateAccessGuid(actor, id);
    return { path: { accessGuidId }, ...changes };
  }),
  'applications.instances': ofWorld(),
  'masterKeys.list': ofWorld(),
  'masterKeys.get': ofWorld(),
  'masterKeys.blastRadius': ofWorld(),
  // The key of the world decrypts: nothing changes.
  'masterKeys.allowDecryption': ofWorld(),
  'masterKeys.destroy': application(({ masterKeyId, name }) => ({
    path: { keyId: masterKeyId },
    body: { confirm: name },
    ...changes,
  })),
  'endpoints.create': async (given) => {
    const keyId = await makeKey(given, given.ids.vault);
    return { body: { name: fresh('endpoint'), vaultId: given.ids.vault, keyId }, ...changes };
  },
  'endpoints.get': ofEndpoint(),
  'endpoints.enable': endpoint(async (id, { opened, actor }) => {
    await opened.operations.endpoints.disable(actor, id);
    return changes;
  }),
  'endpoints.disable': endpoint(() => changes),
  'endpoints.rename': endpoint(() => ({ body: { name: fresh('renamed') } })),
  'endpoints.changeSettings': endpoint(() => ({ body: { ...settings, operatorProbes: false }, ...changes })),
  'endpoints.simulateRules': ofEndpoint({ body: { requests: [{ kmsOperation: 'Encrypt' }] } }),
  'endpoints.delete': endpoint(() => changes),
  'endpoints.addCredential': endpoint(() => changes),
  'endpoints.removeCredential': endpoint(async (id, given) => ({
    path: { credentialId: await addCredential(given, id) },
    ...changes,
  })),
  'diagnostics.run': ofEndpoint({ body: {} }),
  'diagnostics.follow': ofEndpoint({ body: {} }),
  'diagnostics.list': ofEndpoint(),
  'diagnostics.get': (given) => ofEndpoint({ path: { diagnosisId: given.ids.diagnosis } })(given),
  'requests.correlate': () => ({ body: { text: 'none' } }),
  'requests.searchOne': ofEndpoint(),
  'requests.exportOne': ofEndpoint(),
  'runbooks.fill': ofWorld({ path: { name: 'rotate' } }),
  'runbooks.runs': ofWorld(),
  'runbooks.start': ofWorld({ body: { runbook: 'rotate' } }),
  'runbooks.get': (given) => ofWorld({ path: { runId: given.ids.run } })(given),
  'runbooks.completeStep': withRun({ body: {} }),
  'runbooks.reopenStep': withRun({}),
  'runbooks.finish': withRun({ body: { outcome: 'abandoned' } }),
  'externalKeyStores.register': ({ ids }) => ({
    body: {
      name: fresh('store'),
      customKeyStoreId: `cks-${fresh('0123456789')}`,
      region: 'eu-central-1',
      endpointId: ids.endpoint,
    },
    ...changes,
  }),
  'externalKeyStores.get': scopeless(({ keyStore }) => keyStore),
  'externalKeyStores.probe': scopeless(({ keyStore }) => keyStore),
  'externalKeyStores.remove': async (given) => at(await makeKeyStore(given, given.ids.endpoint), changes),
  'notifications.acknowledge': notification,
  'notifications.release': notification,
  'approvals.get': ({ ids, governed }) => at(ids.approval ?? none, governed ? {} : { answers: [404] }),
  'approvals.approve': held,
  'approvals.reject': held,
  'snapshots.create': ({ tenantId }) => ({ body: { tenantId }, ...changes }),
  'snapshots.get': scopeless(({ snapshot }) => snapshot),
  'packages.download': () => ({ path: { name: samplePackage } }),
  'snapshots.exports': scopeless(({ snapshot }) => snapshot),
  'snapshots.delete': async ({ hand, tenantId }) => at(await hand.make(tenantId), changes),
  'snapshots.undelete': async ({ opened, hand, tenantId }) => {
    const id = await hand.make(tenantId);
    await opened.operations.snapshots.delete(actorIn(tenantId), id);
    return at(id, changes);
  },
  'snapshots.export': async ({ hand, tenantId }) => at(await hand.make(tenantId), changes),
  'snapshots.import': () => ({ file: Buffer.from('no snapshot'), answers: [400, 409, 422] }),
  'snapshots.open': ({ ids, hand }) => at(ids.snapshot, { body: { recoveryKeyId: hand.recovery.id } }),
  'snapshots.verify': ({ ids }) => at(ids.snapshot, { body: {} }),
  'snapshots.verifyOpened': withOpening,
  'snapshots.restore': withOpening,
  'copies.get': async (given) => at(await exportedCopy(given)),
  'copies.confirmDestroyed': async (given) => at(await exportedCopy(given), { body: {}, ...changes }),
  'snapshots.ofKey': scopeless(({ key }) => key),
  'recoveryKeys.register': () => ({ body: { name: fresh('recovery'), publicKey: newRecoveryKey() }, ...changes }),
  'recoveryKeys.remove': async ({ opened }) => {
    const given = { name: fresh('recovery'), publicKey: newRecoveryKey() };
    return at((await opened.operations.recoveryKeys.register(administrator, given)).id, changes);
  },
  'audit.prove': () => ({ path: { sequence: '0' }, answers: [200, 404] }),
  'tokens.create': ({ tenantId }) => ({
    body: {
      name: fresh('token'),
      grants: [{ role: 'auditor', scope: null, tenantId }],
      expiresAt: new Date(Date.now() + 1_800_000).toISOString(),
    },
    ...changes,
  }),
  'tokens.revoke': async ({ opened, tenantId }) =>
    at((await makeToken(opened, [{ role: 'auditor', scope: null }], tenantId)).id, changes),
  'users.create': ({ tenantId }) => ({
    body: { name: fresh('user'), grants: [{ role: 'auditor', scope: null, tenantId }] },
    ...changes,
  }),
  'users.get': scopeless(({ user }) => user),
  'users.update': async (given) => {
    const grants = [{ role: 'key-manager', scope: null, tenantId: given.tenantId }];
    const body = { displayName: 'Changed', email: null, grants, subject: null, mustChangePassword: false };
    return ofUser({ body, ...changes })(given);
  },
  'users.enable': async (given) => {
    const { id } = await makeUser(given.opened, 'auditor', given.tenantId);
    await given.opened.operations.users.disable(given.actor, everything, id);
    return at(id, changes);
  },
  'users.disable': ofUser(changes),
  'users.unlock': ofUser(),
  'users.resetPassword': ofUser({ body: {}, ...changes }),
  'users.removeFactors': ofUser(),
  'users.permissions': scopeless(({ user }) => user),
  'users.endSessions': ofUser(),
  'users.delete': ofUser(changes),
  'tokens.rotateKey': () => ({ body: {} }),
  'tokens.endFormerKey': () => ({ body: {}, answers: [200, 409] }),
  'sessions.end': () => at(none, { answers: [404] }),
  'setup.confirm': () => ({ body: { step: 'audit-sinks', confirmed: true } }),
  // The node that answers continues being one.
  'nodes.get': () => at(none, { answers: [404] }),
  'nodes.drain': () => at(none, { answers: [404] }),
  'nodes.resume': () => at(none, { answers: [404] }),
  'nodes.remove': () => at(none, { answers: [404] }),
  'root.rotate': (given) => ({ body: { tenantId: given.tenantId }, before: () => untilErased(given) }),
  'audit.rotateKey': (given) => ({ before: () => untilErased(given) }),
  'clock.confirm': () => ({ body: { time: '2026-01-01T00:00:00Z' }, answers: [400, 409] }),
  'root.releaseCopy': () => ({ body: { name: 'standby none' }, answers: [403, 404] }),
  'quarantine.confirm': () => ({ body: { code: 'none' }, answers: [400, 403, 404, 409] }),
};
