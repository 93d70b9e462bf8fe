// The whole service in this process, without a listener: operations over the real store, addon and
// root file, in a folder of its own. The TDE front is called over plain HTTP on the loopback.

import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, parseConfig } from '../../server/app/config/config.ts';
import type { Service } from '../../server/app/running-service.ts';
import { openService } from '../../server/app/service.ts';
import { systemClock } from '../../server/base/time.ts';
import {
  envelopeType,
  type InstanceHeader,
  instanceText,
  onceHeader,
  packEnvelope,
  type TdeRoutes,
  tdeRoutes,
  unpackEnvelope,
} from '../../server/contract/tde.ts';
import type { TenantActor } from '../../server/domain/actor.ts';
import type { AuditEvent } from '../../server/domain/audit-event.ts';
import { everyTenant } from '../../server/domain/tenant.ts';
import type { InstanceDescription, NewTokenObject, Operations, TdeCaller } from '../../server/operations/index.ts';
import { layPackages, samplePackage } from './package-shelf.ts';
import { layDatabase, storeToml } from './test-store.ts';

let defaultTenantId = '';
/** For the whole platform; acts in the default tenant of the service that was opened last. */
export const administrator: TenantActor = {
  kind: 'administrator',
  id: 'test',
  name: 'test',
  requestId: 'request-1',
  peer: null,
  get tenantId() {
    return defaultTenantId;
  },
  reach: everyTenant,
};

export const instance: InstanceDescription & InstanceHeader = {
  host: 'db1.example',
  pid: 4711,
  process: 'ora_gen0_cdb1',
  library: '1.0.0',
  agent: '1.0.0',
  osUser: 'oracle',
};

export interface OpenedService {
  readonly service: Service;
  readonly operations: Operations;
  readonly folder: string;
  readonly config: Config;
  /** Errors and warnings that the service logged. */
  readonly complaints: { readonly level: string; readonly message: string; readonly fields: unknown }[];
  readonly fatal: Error[];
  /** Stops it and keeps the folder. */
  stop(): Promise<void>;
  /** Stops it and deletes the folder. */
  remove(): Promise<void>;
}

export const openTestService = async (
  options: {
    readonly folder?: string;
    readonly toml?: string;
    readonly acceptDatabase?: boolean;
    readonly logState?: Parameters<typeof openService>[0]['logState'];
    readonly hostFacts?: () => string;
    readonly stopGrace?: () => number;
    readonly showFirstToken?: (token: string) => void;
    /** Whether a new recovery key and an export wait for a second person. */
    readonly exportSecondPerson?: boolean;
  } = {},
): Promise<OpenedService> => {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'dke-service-'));
  const toml = options.toml ?? '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
  if (options.folder === undefined) layDatabase(folder, toml);
  const parsed = parseConfig(`${toml}${await storeToml(folder, toml)}`, null, folder);
  const packagesDirectory = parsed.server.packagesDirectory ?? join(folder, 'packages');
  layPackages(packagesDirectory, { [samplePackage]: 'a package' });
  const { exportSecondPerson = false } = options;
  const config: Config = {
    ...parsed,
    server: { ...parsed.server, packagesDirectory },
    snapshots: { ...parsed.snapshots, exportSecondPerson },
  };
  const complaints: { level: string; message: string; fields: unknown }[] = [];
  const fatal: Error[] = [];
  const keep = (level: string) => (message: string, fields?: unknown) => {
    complaints.push({ level, message, fields });
  };
  const service = await openService({
    config,
    version: '0.0.0-test',
    log: { debug: () => undefined, info: () => undefined, warn: keep('warn'), error: keep('error') },
    logState: () => options.logState?.() ?? { lost: 0, failure: null },
    acceptDatabase: options.acceptDatabase ?? false,
    publicUrl: () => 'https://keys.example',
    listening: () => ({ host: '127.0.0.1', port: 9 }),
    onFatal: (error) => {
      fatal.push(error);
    },
    showFirstToken: options.showFirstToken,
    hostFacts: options.hostFacts,
    stopGrace: options.stopGrace,
    // What Argon2id does with more is the same, and takes a second on a busy machine.
    passwordParameters: { memory: 1024, passes: 1 },
    connection: { peerOf: () => null, afterSent: () => undefined },
  });
  const tenantBefore = defaultTenantId;
  defaultTenantId = (await service.operations.tenants.default()).id;
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await service.stop();
    defaultTenantId = tenantBefore;
  };
  return {
    service,
    operations: service.operations,
    folder,
    config,
    complaints,
    fatal,
    stop,
    remove: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** A group with one application, and a caller for it. */
export const registerCaller = async (
  { operations }: Pick<OpenedService, 'operations'>,
  name: string,
  groupId?: string,
): Promise<{
  readonly caller: TdeCaller;
  readonly accessGuid: string;
  readonly groupId: string;
  readonly serverUrl: string;
}> => {
  const group = groupId ?? (await operations.tdeGroups.create(administrator, { name: `group of ${name}` })).id;
  const issued = await operations.applications.register(administrator, { name, groupId: group });
  const caller = await operations.tde.authenticate({
    accessGuid: issued.accessGuid,
    appId: issued.application.appId,
    instance,
    requestId: 'call-1',
    peer: null,
  });
  return { caller, accessGuid: issued.accessGuid, groupId: group, serverUrl: issued.serverUrl };
};

export const toLabel = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

/** The master key of a database: AES-256, sensitive, not extractable. */
export const masterKey = (label: string): NewTokenObject => ({
  class: 'secret-key',
  label: toLabel(label),
  algorithm: 'aes',
  bits: 256,
  usages: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  sensitive: true,
  extractable: false,
  modifiable: false,
  destroyable: true,
  private: true,
  attributes: '',
});

/** Bytes that are not a key and may be read. */
export const dataObject = (label: string): NewTokenObject & { readonly class: 'data' } => ({
  ...masterKey(label),
  ...{ class: 'data', algorithm: null, bits: null, usages: [], sensitive: false, extractable: true, modifiable: true },
});

export const auditKindsOf = async (
  { operations }: Pick<OpenedService, 'operations'>,
  subjectId: string,
): Promise<readonly string[]> =>
  (await operations.audit.list(administrator, { subjectId, order: 'oldest' })).items.map((event) => event.kind);

/** Waits until the audit log has such a record. */
export const untilAudited = async (
  { operations }: Pick<OpenedService, 'operations'>,
  kind: AuditEvent['kind'],
  subjectId?: string,
  timeoutMs = 300_000,
): Promise<AuditEvent> => {
  const deadline = systemClock.monotonic() + timeoutMs;
  for (;;) {
    const page = await operations.audit.list(administrator, { kind, subjectId, limit: 1 });
    const [event] = page.items;
    if (event !== undefined) return event;
    if (systemClock.monotonic() > deadline) throw new Error(`no audit record ${kind} came`);
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
};

export interface TdeAnswer {
  readonly status: number;
  readonly head: unknown;
  readonly raw: Buffer;
  readonly requestId: string | null;
}

const listeners = new WeakMap<Service, Promise<number>>();
/**
 * The port where this service's TDE front listens, without TLS; it does not keep the process alive.
 */
const listen = (service: Service): Promise<number> => {
  const known = listeners.get(service);
  if (known !== undefined) return known;
  const server = createServer((incoming, outgoing) => service.tde.handle(incoming, outgoing)).unref();
  server.keepAliveTimeout = 60_000;
  const port = new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
  listeners.set(service, port);
  return port;
};
const kept = new Agent({ keepAlive: true });

/** Sends what it is given, and reads an envelope or a problem. */
export const sendTde = async (
  service: Service,
  path: string,
  headers: OutgoingHttpHeaders,
  body: Uint8Array,
): Promise<TdeAnswer> => {
  const port = await listen(service);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path, headers, agent: kept }, resolve);
    sent.once('error', reject);
    sent.end(body);
  });
  const answer = Buffer.concat(await response.toArray());
  const status = response.statusCode ?? 0;
  const requestId = String(response.headers['x-request-id'] ?? '');
  if (response.headers['content-type'] !== envelopeType)
    return { status, head: JSON.parse(answer.toString('utf8')), raw: Buffer.alloc(0), requestId };
  return { status, ...unpackEnvelope(answer), requestId };
};

/** One call of the TDE API through the front. */
export const callTde = async <R extends keyof TdeRoutes>(
  service: Service,
  accessGuid: string,
  route: R,
  head: TdeRoutes[R]['head'] | object,
  options: {
    readonly handle?: number;
    readonly raw?: Uint8Array;
    readonly bearer?: string;
    readonly appId?: string;
    /** The Idempotency-Key. */
    readonly once?: string;
  } = {},
): Promise<TdeAnswer> => {
  const path = tdeRoutes[route].path.replace(':handle', String(options.handle ?? 0));
  const address = `/tde/v1/${accessGuid}/${options.appId ?? 'db'}${path}`;
  const headers = {
    authorization: `Bearer ${options.bearer ?? accessGuid}`,
    'content-type': envelopeType,
    'x-request-id': 'call-7',
    'x-dke-instance': instanceText(instance),
    ...(options.once === undefined ? {} : { [onceHeader]: options.once }),
  };
  return sendTde(service, address, headers, packEnvelope(head, options.raw));
};
