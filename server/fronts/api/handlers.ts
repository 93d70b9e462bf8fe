// One handler a row of the contract: it calls one operation and represents what came back. The types of `Handlers` make the
// compiler ask for every row.

import { toBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Grant } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { IssuedAccessGuid as Issued, Operations } from '../../operations/index.ts';
import type { ApiRoutes } from '../contract/api/index.ts';
import type { AnswerOf, RouteInput, RouteRow } from '../contract/api/row.ts';
import type { IssuedAccessGuid } from '../contract/api/tde-applications.ts';
import { ValidationError } from './errors.ts';
import { exportLines, exportRequests, type StreamedFile } from './export.ts';
import {
  representAccessGuid,
  representApplication,
  representAuditEvent,
  representBlastRadius,
  representCheckpoint,
  representCorrelated,
  representDiagnosis,
  representEndpoint,
  representExternalKeyStore,
  representGroup,
  representInstance,
  representKey,
  representKeyVersion,
  representMasterKey,
  representMove,
  representPage,
  representRequest,
  representRole,
  representSink,
  representStatus,
  representTenant,
  representToken,
  representVault,
  uriPathOf,
} from './represent.ts';

/** A JSON document that holds a secret, as bytes: it never was text, and is wiped when it has been sent. */
export class SecretJson {
  readonly bytes: Buffer;
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

export interface Created<A> {
  /** Last segment of the `Location`. */
  readonly id: string;
  readonly answer: A | SecretJson;
}

export type ApiCall<R extends RouteRow> = RouteInput<R> & { readonly actor: Actor; readonly grants: readonly Grant[] };
export type Handler<R extends RouteRow> = (
  call: ApiCall<R>,
) => Promise<
  R extends { readonly creates: true }
    ? Created<AnswerOf<R>>
    : R extends { readonly streams: readonly string[] }
      ? StreamedFile
      : AnswerOf<R>
>;

/** Sessions are the front's own: see app.ts. */
export type ResourceRoutes = Omit<ApiRoutes, 'session'>;
export type Handlers = {
  readonly [G in keyof ResourceRoutes]: { readonly [N in keyof ResourceRoutes[G]]: HandlerOf<ResourceRoutes[G][N]> };
};
type HandlerOf<R> = R extends RouteRow ? Handler<R> : never;

const quote = (text: string): string => JSON.stringify(text);

/** pkcs11.toml, ready to use. */
const formatProviderConfig = ({ serverUrl, accessGuid }: Issued): string =>
  [
    '# Configuration of libdke_pkcs11.so. It holds a credential: mode 600, owner the database OS user.',
    '# DKE_PKCS11_CONF names this file in the environment that the instance starts from.',
    `server_url = ${quote(serverUrl)}`,
    `access_token = ${quote(accessGuid)}`,
    '',
  ].join('\n');

/** Where Oracle looks for a PKCS#11 library; exactly one may lie there. */
const libraryPath = '/opt/oracle/extapi/64/hsm/dke/1.0/libdke_pkcs11.so';

const representIssued = (issued: Issued): IssuedAccessGuid => ({
  record: representAccessGuid(issued.record),
  accessGuid: issued.accessGuid,
  serverUrl: issued.serverUrl,
  config: {
    server_url: issued.serverUrl,
    access_token: issued.accessGuid,
    pkcs11_toml: formatProviderConfig(issued),
    mode: '600',
    library: libraryPath,
  },
});

/** The proxy configuration file of AWS KMS, put together from bytes. Takes the secret: it is wiped here. */
const formatProxyConfiguration = (prefix: string, accessKeyId: string, secretAccessKey: Buffer): SecretJson => {
  const head = `{"XksProxyUriPath":${quote(uriPathOf(prefix))},"XksProxyAuthenticationCredential":{"AccessKeyId":${quote(accessKeyId)},"RawSecretAccessKey":"`;
  // Not from the shared pool, which is never wiped.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(head) + secretAccessKey.length + 3);
  let at = bytes.write(head);
  at += secretAccessKey.copy(bytes, at);
  bytes.write('"}}', at);
  secretAccessKey.fill(0);
  return new SecretJson(bytes);
};

export const createHandlers = (operations: Operations): Handlers => {
  const { tenants, vaults, keys, tdeGroups, applications, masterKeys, endpoints } = operations;
  const { access, diagnostics, requests, audit, tokens, externalKeyStores } = operations;
  return {
    tenants: {
      list: async ({ actor }) => ({ items: (await tenants.list(actor)).map(representTenant) }),
      get: async ({ actor, path }) => representTenant(await tenants.get(actor, path.id)),
    },

    vaults: {
      create: async ({ actor, body }) => {
        const vault = await vaults.create(actor, body);
        return { id: vault.id, answer: representVault(vault) };
      },
      list: async ({ actor, query }) => representPage(await vaults.list(actor, query), representVault),
      get: async ({ actor, path }) => representVault(await vaults.get(actor, path.id)),
      enable: async ({ actor, path }) => representVault(await vaults.enable(actor, path.id)),
      disable: async ({ actor, path }) => representVault(await vaults.disable(actor, path.id)),
      delete: async ({ actor, path }) => representVault(await vaults.delete(actor, path.id)),
    },

    keys: {
      create: async ({ actor, body }) => {
        const key = await keys.create(actor, body);
        return { id: key.id, answer: representKey(key) };
      },
      list: async ({ actor, query }) => representPage(await keys.list(actor, query), representKey),
      get: async ({ actor, path }) => representKey(await keys.get(actor, path.id)),
      versions: async ({ actor, path }) => ({
        items: (await keys.versions(actor, path.id)).map(representKeyVersion),
      }),
      enable: async ({ actor, path }) => representKey(await keys.enable(actor, path.id)),
      disable: async ({ actor, path }) => representKey(await keys.disable(actor, path.id)),
      rotate: async ({ actor, path }) => representKeyVersion(await keys.rotate(actor, path.id)),
      delete: async ({ actor, path }) => {
        const { key, vaultCopyCleared } = await keys.softDelete(actor, path.id);
        return { key: representKey(key), vaultCopyCleared };
      },
    },

    tdeGroups: {
      create: async ({ actor, body }) => {
        const group = await tdeGroups.create(actor, body);
        return { id: group.id, answer: representGroup(group) };
      },
      list: async ({ actor, query }) => representPage(await tdeGroups.list(actor, query), representGroup),
      get: async ({ actor, path }) => representGroup(await tdeGroups.get(actor, path.id)),
    },

    applications: {
      register: async ({ actor, body }) => {
        const issued = await applications.register(actor, body);
        return {
          id: issued.application.id,
          answer: { application: representApplication(issued.application), ...representIssued(issued) },
        };
      },
      list: async ({ actor, query }) => representPage(await applications.list(actor, query), representApplication),
      get: async ({ actor, path }) => representApplication(await applications.get(actor, path.id)),
      enable: async ({ actor, path }) => representApplication(await applications.enable(actor, path.id)),
      disable: async ({ actor, path }) => representApplication(await applications.disable(actor, path.id)),
      move: async ({ actor, path, query, body }) => {
        const application = await applications.get(actor, path.id);
        if (query.dryRun === true) {
          const move = await applications.planMove(actor, path.id, body.groupId);
          return { dryRun: true, application: representApplication(application), move: representMove(move) };
        }
        if (body.confirm !== application.name)
          throw new ValidationError([
            { path: 'confirm', message: body.confirm === undefined ? 'is missing' : "is not the application's name" },
          ]);
        const moved = await applications.move(actor, path.id, body.groupId);
        return {
          dryRun: false,
          application: representApplication(moved.application),
          move: representMove(moved.move),
        };
      },
      rotateAccessGuid: async ({ actor, path }) => {
        const issued = await applications.rotateAccessGuid(actor, path.id);
        return { id: issued.record.id, answer: representIssued(issued) };
      },
      accessGuids: async ({ actor, path }) => ({
        items: (await applications.accessGuids(actor, path.id)).map(representAccessGuid),
      }),
      removeAccessGuid: async ({ actor, path }) =>
        representAccessGuid(await applications.removeAccessGuid(actor, path.id, path.accessGuidId)),
      instances: async ({ actor, path }) => ({
        items: (await applications.instances(actor, path.id)).map(representInstance),
      }),
    },

    masterKeys: {
      list: async ({ actor, path, query }) =>
        representPage(await masterKeys.list(actor, path.applicationId, query), representMasterKey),
      get: async ({ actor, path }) => representMasterKey(await masterKeys.get(actor, path.applicationId, path.keyId)),
      blastRadius: async ({ actor, path }) =>
        representBlastRadius(await masterKeys.blastRadius(actor, path.applicationId, path.keyId)),
      destroy: async ({ actor, path, query, body }) => {
        const key = await masterKeys.get(actor, path.applicationId, path.keyId);
        if (query.dryRun === true) {
          const blastRadius = await masterKeys.blastRadius(actor, path.applicationId, path.keyId);
          return { dryRun: true, key: representMasterKey(key), blastRadius: representBlastRadius(blastRadius) };
        }
        if (body.confirm !== key.name) {
          throw new ValidationError([
            { path: 'confirm', message: body.confirm === undefined ? 'is missing' : "is not the master key's name" },
          ]);
        }
        const destroyed = await masterKeys.destroy(actor, path.applicationId, path.keyId);
        return {
          dryRun: false,
          key: representMasterKey(destroyed.key),
          blastRadius: representBlastRadius(destroyed.blastRadius),
        };
      },
    },

    endpoints: {
      create: async ({ actor, body }) => {
        const endpoint = await endpoints.create(actor, body);
        return { id: endpoint.id, answer: representEndpoint(endpoint) };
      },
      list: async ({ actor, query }) => representPage(await endpoints.list(actor, query), representEndpoint),
      get: async ({ actor, path }) => representEndpoint(await endpoints.get(actor, path.id)),
      enable: async ({ actor, path }) => representEndpoint(await endpoints.enable(actor, path.id)),
      disable: async ({ actor, path }) => representEndpoint(await endpoints.disable(actor, path.id)),
      delete: async ({ actor, path }) => representEndpoint(await endpoints.delete(actor, path.id)),
      changeSettings: async ({ actor, path, body }) =>
        representEndpoint(await endpoints.changeSettings(actor, path.id, body)),
      addCredential: async ({ actor, path }) => {
        const { prefix } = await endpoints.get(actor, path.id);
        const { credential, secretAccessKey } = await endpoints.addCredential(actor, path.id);
        return {
          id: credential.id,
          answer: formatProxyConfiguration(prefix, credential.accessKeyId, secretAccessKey),
        };
      },
      removeCredential: async ({ actor, path }) =>
        representEndpoint(await endpoints.removeCredential(actor, path.id, path.credentialId)),
    },

    requests: {
      search: async ({ actor, query }) => representPage(await requests.search(actor, query), representRequest),
      export: async ({ actor, query: { format = 'ndjson', ...filter } }) =>
        exportRequests(await requests.export(actor, filter, format), format),
      correlate: async ({ actor, body }) => representCorrelated(await requests.correlate(actor, body.text)),
      searchOne: async ({ actor, path, query }) => {
        const { id: endpointId } = await endpoints.get(actor, path.id);
        return representPage(await requests.search(actor, { ...query, endpointId }), representRequest);
      },
      exportOne: async ({ actor, path, query: { format = 'ndjson', ...filter } }) => {
        const { id: endpointId } = await endpoints.get(actor, path.id);
        return exportRequests(await requests.export(actor, { ...filter, endpointId }, format), format);
      },
    },

    diagnostics: {
      run: async ({ actor, path, body: { callerTime, cloud = {} } }) => {
        const time = callerTime === undefined ? null : Date.parse(callerTime);
        const diagnosis = await diagnostics.run(actor, path.id, { callerTime: time, cloud });
        return { id: diagnosis.id, answer: representDiagnosis(diagnosis) };
      },
      list: async ({ actor, path, query }) =>
        representPage(await diagnostics.list(actor, path.id, query), representDiagnosis),
      get: async ({ actor, path }) => representDiagnosis(await diagnostics.get(actor, path.id, path.diagnosisId)),
    },

    externalKeyStores: {
      register: async ({ actor, body }) => {
        const store = await externalKeyStores.register(actor, body);
        return { id: store.id, answer: representExternalKeyStore(store) };
      },
      list: async ({ actor, query }) =>
        representPage(await externalKeyStores.list(actor, query), representExternalKeyStore),
      get: async ({ actor, path }) => representExternalKeyStore(await externalKeyStores.get(actor, path.id)),
      probe: async ({ actor, path }) => representExternalKeyStore(await externalKeyStores.probe(actor, path.id)),
      remove: async ({ actor, path }) => representExternalKeyStore(await externalKeyStores.remove(actor, path.id)),
    },

    audit: {
      list: async ({ actor, query }) => representPage(await audit.list(actor, query), representAuditEvent),
      log: async () => {
        const { checkpoint, ...rest } = await audit.log();
        return { ...rest, checkpoint: checkpoint === null ? null : representCheckpoint(checkpoint) };
      },
      checkpoints: async ({ actor, query }) =>
        representPage(await audit.checkpoints(actor, query), representCheckpoint),
      sinks: async ({ actor }) => ({ items: (await audit.sinks(actor)).map(representSink) }),
      export: async ({ actor }) => exportLines(await audit.export(actor), 'dke-audit.ndjson'),
      prove: async ({ actor, path: { sequence } }) => {
        if (!/^[1-9][0-9]{0,14}$/.test(sequence)) throw new ServiceError('not-found', 'there is no such audit record');
        const { entry, checkpoint, hashes } = await audit.prove(actor, Number(sequence));
        return { entry, checkpoint: representCheckpoint(checkpoint), hashes: hashes.map(toBase64) };
      },
    },

    tokens: {
      create: async ({ actor, grants: own, body: { name, expiresAt, kind, grants } }) => {
        const end = expiresAt === undefined || expiresAt === null ? null : Date.parse(expiresAt);
        const { record, token } = await tokens.create(actor, own, { name, expiresAt: end, kind, grants });
        return { id: record.id, answer: { record: representToken(record), token } };
      },
      list: async ({ actor, query }) => representPage(await tokens.list(actor, query), representToken),
      roles: () => Promise.resolve({ items: access.roles().map(representRole) }),
      revoke: async ({ actor, path }) => representToken(await tokens.revoke(actor, path.id)),
    },

    status: {
      get: async ({ actor }) => {
        const [service, health] = await Promise.all([operations.status(actor), operations.health()]);
        return representStatus(service, health);
      },
    },
  };
};

/** For routes that the table promises and the handlers lack: cannot happen while both come from the same types. */
export const missingHandler = (name: string): ServiceError => new ServiceError('internal', `no handler for ${name}`);
