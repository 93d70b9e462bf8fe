// The service's working memory (ports/directory.ts). Vaults, endpoints, applications and access_guids are held whole: they are few. Token objects and
// their keys are a bounded cache (object-cache.ts). What is shown here follows a commit; a reference to a destroyed key is released in the step that
// learns of it, and a load that began before that step does not put it back.

import { idBytes } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import { denyingRule } from '../../domain/authorization-rule.ts';
import type { Changes } from '../../domain/changes.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { Key } from '../../domain/key.ts';
import { isExternalKey, isVaultOpen, refusalOfExternalKey, refusalOfState } from '../../domain/key-policy.ts';
import type { TdeApplication } from '../../domain/tde.ts';
import { everyTenant, isStopped, type Tenant } from '../../domain/tenant.ts';
import type { Integrity, Vault } from '../../domain/vault.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Directory, EndpointUse } from '../../ports/directory.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredRecord } from '../../ports/records.ts';
import type { StoredAccessGuid } from '../../ports/tde-repositories.ts';
import type { Window } from '../../ports/window.ts';
import type { XksCredentialView, XksEndpointView, XksKeyView, XksUse } from '../../ports/xks-directory.ts';
import { credentialAttributes, recordAttributes } from '../keys/key-records.ts';
import { createRequestQueue } from '../requests/request-queue.ts';
import { findDefaultTenant } from '../shared/find.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { createObjectCache } from './object-cache.ts';

export interface DirectoryLimits {
  /** Token objects kept with their opened keys. */
  readonly objects: number;
  /** Request records waiting to be written; more are dropped and counted. */
  readonly requests: number;
}

/** Busy endpoints use their keys all the time: for people it is enough to know it to this. */
const keyUsesEveryMs = 10_000;

interface HeldEndpoint {
  readonly endpoint: Endpoint;
  readonly view: XksEndpointView;
}

interface HeldUse {
  readonly endpointId: string;
  readonly keyId: string;
  readonly use: XksUse;
  /** The last use that was written; 0: none. */
  written: number;
}

interface HeldKey {
  readonly key: Key;
  readonly view: XksKeyView;
}

export const createDirectory = (
  { store, core, ring, clock, log }: Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'log'>,
  limits: DirectoryLimits,
): Directory => {
  const tenants = new Map<string, Tenant>();
  let defaultTenant = '';
  const vaults = new Map<string, Vault>();
  const endpoints = new Map<string, HeldEndpoint>();
  const byPrefix = new Map<string, HeldEndpoint>();
  const xksKeys = new Map<string, HeldKey>();
  /** By endpoint; of those that are gone until it is written. */
  const keyUses = new Map<string, HeldUse>();
  const applications = new Map<string, TdeApplication>();
  /** By keyed hash: live access_guids only. */
  const accessGuids = new Map<string, StoredAccessGuid>();
  /** By keyed hash: those that were removed, by application. A caller who still presents one is told so. */
  const formerGuids = new Map<string, string>();
  const requests = createRequestQueue(limits.requests);
  const credentialUses = new Map<string, number>();
  const alarmed = new Set<string>();
  let tellAuthorities: () => void = () => undefined;
  let healthy = true;
  /** Changes with every renewal: agents see it as part of the epoch. */
  let generation = 0;
  /** So that a restarted service does not show an epoch that an agent has seen for another state. */
  const epochBase = clock.now();
  let renewals: Promise<void> = Promise.resolve();

  /** One alarm for one row in the life of this process; the row itself is refused every time. */
  const alarm = (table: string, id: string, tenantId: string): void => {
    const name = `${table} ${id}`;
    if (alarmed.has(name)) return;
    alarmed.add(name);
    log.error('a stored row was changed from outside: every use of it is refused', { table, id });
    store
      .write((tx) =>
        tx.audit.append({
          kind: 'row.tampered',
          actor: serviceActor('integrity'),
          tenantId,
          subject: { kind: 'service', id },
          details: { table },
        }),
      )
      .catch((error: unknown) => {
        alarmed.delete(name);
        log.error('the alarm could not be recorded', { table, id, error });
      });
  };
  const sound = (
    table: string,
    row: { readonly id: string; readonly tenantId: string; readonly integrity: Integrity },
  ) => {
    if (row.integrity === 'ok') return true;
    alarm(table, row.id, row.tenantId);
    return false;
  };

  // A tenant whose row was changed from outside is stopped: its state is not known.
  const stopOf = (tenantId: string): ReturnType<typeof isStopped> => {
    const tenant = tenants.get(tenantId);
    return tenant === undefined ? 'deleted' : isStopped(tenant);
  };
  const renewVault = async (id: string): Promise<void> => {
    const vault = await store.read.vaults.get(everyTenant, id);
    if (vault === undefined) vaults.delete(id);
    else vaults.set(id, vault);
  };

  /** KEKs that another node has made since. */
  const knowKeks = async (records: readonly StoredRecord[]): Promise<void> => {
    if (!records.every((record) => ring.knows(record))) await ring.refresh(store.read);
  };

  const releaseKey = (id: string): void => {
    const held = xksKeys.get(id);
    if (held === undefined) return;
    xksKeys.delete(id);
    for (const reference of held.view.versions.values()) core.release(reference);
  };

  const renewKey = async (id: string): Promise<void> => {
    const wanted = [...endpoints.values()].some((held) => held.endpoint.keyId === id);
    const key = wanted ? await store.read.keys.get(everyTenant, id) : undefined;
    if (key === undefined || !isExternalKey(key) || !sound('keys', key)) {
      releaseKey(id);
      return;
    }
    // Everything is read before anything is changed: in between, requests find the key as it was.
    const read = async () => {
      const records = await store.read.records.list(id, 'vault-copy');
      await knowKeks(records);
      return { records, binding: await store.read.keyBindings.get(id) };
    };
    const { records, binding } = await read().catch((error: unknown) => {
      // A key that may no longer be used is not used until it can be read.
      if (refusalOfState(key) !== null) releaseKey(id);
      throw error;
    });
    const before = xksKeys.get(id)?.view.versions ?? new Map<number, KeyRef>();
    const versions = new Map<number, KeyRef>();
    try {
      for (const record of records)
        versions.set(
          record.version,
          before.get(record.version) ??
            ring.open({ ...record, tenantId: key.tenantId, attributes: recordAttributes(key) }),
        );
    } catch (error) {
      for (const [version, reference] of versions) if (!before.has(version)) core.release(reference);
      releaseKey(id);
      alarm('key_records', id, key.tenantId);
      log.error('a key of an endpoint cannot be opened', { keyId: id, error });
      return;
    }
    xksKeys.set(id, {
      key,
      view: {
        id,
        enabled: refusalOfState(key) === null,
        algorithm: key.algorithm,
        bits: key.bits,
        usages: key.usages,
        refusals: { encrypt: refusalOfExternalKey(key, 'encrypt'), decrypt: refusalOfExternalKey(key, 'decrypt') },
        currentVersion: key.currentVersion,
        versions,
        binding: binding ?? Buffer.concat([idBytes(key.tenantId), idBytes(key.id)]),
      },
    });
    for (const [version, reference] of before) if (!versions.has(version)) core.release(reference);
  };

  const markOf = ({ id, keyId }: Endpoint): XksUse => {
    const held = keyUses.get(id) ?? { endpointId: id, keyId, use: { at: 0 }, written: 0 };
    keyUses.set(id, held);
    return held.use;
  };

  const releaseEndpoint = (id: string, keep: ReadonlySet<string> = new Set()): void => {
    const held = endpoints.get(id);
    if (held === undefined) return;
    endpoints.delete(id);
    byPrefix.delete(held.endpoint.prefix);
    for (const credential of held.view.credentials) if (!keep.has(credential.id)) core.release(credential.secret);
  };

  const renewEndpoint = async (id: string): Promise<void> => {
    const endpoint = await store.read.endpoints.get(everyTenant, id);
    const before = endpoints.get(id);
    const gone = endpoint === undefined || endpoint.state === 'deleted' || stopOf(endpoint.tenantId) === 'deleted';
    if (gone || !sound('endpoints', endpoint)) {
      releaseEndpoint(id);
    } else {
      const credentials: XksCredentialView[] = [];
      for (const credential of endpoint.credentials) {
        const known = before?.view.credentials.find((other) => other.id === credential.id);
        if (known !== undefined) {
          credentials.push(known);
          continue;
        }
        const record = await store.read.records.get(credential.id, 1, 'endpoint-secret');
        if (record === undefined) continue;
        await knowKeks([record]);
        try {
          const secret = ring.open({
            ...record,
            tenantId: endpoint.tenantId,
            attributes: credentialAttributes(credential.accessKeyId),
          });
          credentials.push({ id: credential.id, accessKeyId: credential.accessKeyId, secret });
        } catch (error) {
          alarm('key_records', credential.id, endpoint.tenantId);
          log.error('a credential cannot be opened', { endpointId: id, credentialId: credential.id, error });
        }
      }
      releaseEndpoint(id, new Set(credentials.map((credential) => credential.id)));
      const held: HeldEndpoint = {
        endpoint,
        view: {
          id,
          name: endpoint.name,
          prefix: endpoint.prefix,
          tenantId: endpoint.tenantId,
          enabled: endpoint.state === 'enabled',
          get suspended() {
            return stopOf(endpoint.tenantId) !== null;
          },
          settings: endpoint.settings,
          denyingRule: (origin) => denyingRule(endpoint.settings.rules, origin),
          externalKeyId: endpoint.keyId,
          credentials,
          use: markOf(endpoint),
        },
      };
      endpoints.set(id, held);
      byPrefix.set(endpoint.prefix, held);
    }
    const authoritiesOf = (held: HeldEndpoint | undefined) => held?.endpoint.settings.clientCertificate?.authorities;
    if (authoritiesOf(before) !== authoritiesOf(endpoints.get(id))) tellAuthorities();
    const keyId = endpoint?.keyId ?? before?.endpoint.keyId;
    // A key that is open is read again when it changes itself.
    const isOpen = !gone && before?.endpoint.keyId === keyId && xksKeys.has(keyId ?? '');
    if (keyId !== undefined && !isOpen) await renewKey(keyId);
  };

  const renewApplication = async (id: string): Promise<void> => {
    const application = await store.read.applications.get(everyTenant, id);
    const own = application === undefined ? [] : await store.read.accessGuids.list(id);
    // From here on in one step: a caller who comes while the change is read is known before and afterwards.
    for (const [hash, accessGuid] of accessGuids) if (accessGuid.applicationId === id) accessGuids.delete(hash);
    if (application === undefined || !sound('tde_applications', application)) {
      applications.delete(id);
      return;
    }
    applications.set(id, application);
    for (const accessGuid of own) {
      if (!sound('access_guids', { ...accessGuid, tenantId: application.tenantId })) continue;
      if (accessGuid.removedAt === null) accessGuids.set(accessGuid.hash, accessGuid);
      else formerGuids.set(accessGuid.hash, id);
    }
  };

  const endpointOfCredential = (id: string): string | undefined =>
    [...endpoints.values()].find(({ view }) => view.credentials.some((credential) => credential.id === id))?.endpoint
      .id;

  const objects = createObjectCache({ store, core, ring }, limits.objects, {
    vault: (id) => vaults.get(id),
    sound,
    alarm,
    knowKeks,
  });

  const forget = (changes: Changes): void => {
    generation += 1;
    objects.forget(changes);
  };

  const renewNow = async (changes: Changes): Promise<void> => {
    for (const id of changes.tenants ?? []) await renewTenant(id);
    for (const id of changes.vaults ?? []) await renewVault(id);
    for (const id of changes.credentials ?? []) {
      const endpointId = endpointOfCredential(id);
      if (endpointId !== undefined) await renewEndpoint(endpointId);
    }
    for (const id of changes.endpoints ?? []) await renewEndpoint(id);
    for (const id of changes.keys ?? []) await renewKey(id);
    for (const id of changes.applications ?? []) await renewApplication(id);
  };

  const pages = async <T extends { readonly id: string }>(
    list: (window: Window) => Promise<readonly T[]>,
    renew: (item: T) => Promise<void>,
  ): Promise<void> => {
    for await (const item of each(list, byId, fewAtOnce)) await renew(item);
  };

  const releaseTenant = (id: string): void => {
    for (const { endpoint } of [...endpoints.values()]) if (endpoint.tenantId === id) releaseEndpoint(endpoint.id);
    for (const { key } of [...xksKeys.values()]) if (key.tenantId === id) releaseKey(key.id);
    objects.dropOfTenants(new Set([id]));
  };

  const renewTenant = async (id: string): Promise<void> => {
    const tenant = await store.read.tenants.get(id);
    if (tenant === undefined) {
      tenants.delete(id);
      return;
    }
    sound('tenants', { ...tenant, tenantId: id });
    const before = stopOf(id);
    tenants.set(id, tenant);
    const after = stopOf(id);
    if (after === 'deleted') releaseTenant(id);
    // Nothing of a deleted tenant is held open; what is there again is read again.
    else if (before === 'deleted')
      await pages(
        (window) => store.read.endpoints.list(id, window),
        (endpoint) => renewEndpoint(endpoint.id),
      );
  };

  const loadTenants = async (): Promise<void> => {
    defaultTenant = (await findDefaultTenant(store.read)).id;
    for (const { id } of await store.read.tenants.list()) await renewTenant(id);
  };

  const loadAll = async (): Promise<void> => {
    await loadTenants();
    await pages(
      (window) => store.read.vaults.list(everyTenant, window),
      async (vault) => {
        vaults.set(vault.id, vault);
      },
    );
    await pages(
      (window) => store.read.endpoints.list(everyTenant, window),
      (endpoint) => renewEndpoint(endpoint.id),
    );
    await pages(
      (window) => store.read.applications.list(everyTenant, {}, window),
      (application) => renewApplication(application.id),
    );
  };

  return {
    loadTenants,
    load: loadAll,
    reload: () => {
      forget({ vaults: [...vaults.keys()] });
      objects.clear();
      const again = async (): Promise<void> => {
        for (const id of [...vaults.keys()]) await renewVault(id);
        for (const id of [...endpoints.keys()]) await renewEndpoint(id);
        for (const id of [...xksKeys.keys()]) await renewKey(id);
        for (const id of [...applications.keys()]) await renewApplication(id);
        await loadAll();
      };
      renewals = renewals.then(again, again);
      return renewals;
    },
    forget,
    renew: (changes) => {
      // References go at once, before anything is awaited; what remains is read again in order.
      forget(changes);
      renewals = renewals.then(
        () => renewNow(changes),
        () => renewNow(changes),
      );
      return renewals;
    },
    epoch: () => epochBase + generation,
    application: (hash) => {
      const accessGuid = accessGuids.get(hash);
      const application = accessGuid === undefined ? undefined : applications.get(accessGuid.applicationId);
      return accessGuid === undefined || application === undefined
        ? undefined
        : { application, accessGuidId: accessGuid.id };
    },
    formerApplication: (hash) => applications.get(formerGuids.get(hash) ?? ''),
    applicationById: (id) => applications.get(id),
    findElsewhere: objects.findElsewhere,
    object: objects.object,
    findObjects: objects.findObjects,
    withObjectKeys: objects.withObjectKeys,

    endpoint: (prefix) => {
      const view = byPrefix.get(prefix)?.view;
      return view !== undefined && stopOf(view.tenantId) === 'deleted' ? undefined : view;
    },
    key: (endpoint, externalKeyId) => {
      if (externalKeyId !== endpoint.externalKeyId) return undefined;
      const held = xksKeys.get(externalKeyId);
      const configured = endpoints.get(endpoint.id)?.endpoint;
      if (held === undefined || configured === undefined) return undefined;
      if (held.key.vaultId !== configured.vaultId || held.key.tenantId !== configured.tenantId) return undefined;
      const vault = vaults.get(held.key.vaultId);
      if (vault !== undefined) sound('vaults', vault);
      return isVaultOpen(vault) ? held.view : undefined;
    },
    fleetSize: () => 1,
    otherNodes: () => [],
    healthy: () => healthy,
    setHealthy: (value) => {
      healthy = value;
    },
    record: (entry, isOwnProbe) => {
      if (entry.credentialId !== null && !isOwnProbe) credentialUses.set(entry.credentialId, entry.at);
      requests.push(entry);
    },
    drainRequests: requests.take,
    putBackRequests: requests.putBack,
    countDropped: requests.drop,
    dropped: requests.dropped,
    droppedWritten: requests.droppedWritten,
    drainCredentialUses: () => {
      const taken = new Map(credentialUses);
      credentialUses.clear();
      return taken;
    },
    keyUses: (all) => {
      const now = clock.now();
      return [...keyUses.values()]
        .filter(({ use, written }) => use.at > written && (all || now - written >= keyUsesEveryMs))
        .map(({ endpointId, keyId, use }): EndpointUse => ({ endpointId, keyId, at: use.at }));
    },
    keyUsesWritten: (uses) => {
      for (const { endpointId, at } of uses) {
        const held = keyUses.get(endpointId);
        if (held !== undefined) held.written = Math.max(held.written, at);
      }
      for (const [id, { use, written }] of keyUses) if (!endpoints.has(id) && use.at <= written) keyUses.delete(id);
    },
    requestLog: requests.state,
    clientAuthorities: () => [
      ...new Set(
        [...endpoints.values()].flatMap(({ endpoint: { settings } }) => settings.clientCertificate?.authorities ?? []),
      ),
    ],
    onClientAuthorities: (tell) => {
      tellAuthorities = tell;
    },
    endpoints: () => [...endpoints.values()].map(({ endpoint }) => endpoint),
    endpointById: (id) => endpoints.get(id)?.endpoint,
    tenant: (idOrName) =>
      tenants.get(idOrName) ?? [...tenants.values()].find(({ name, state }) => name === idOrName && state !== 'purged'),
    defaultTenantId: () => defaultTenant,
    stopOf,
    vault: (id) => vaults.get(id),
    close: () => {
      for (const id of [...endpoints.keys()]) releaseEndpoint(id);
      for (const id of [...xksKeys.keys()]) releaseKey(id);
      objects.clear();
      accessGuids.clear();
      formerGuids.clear();
      log.debug('the directory is empty', { at: clock.now() });
    },
  };
};
