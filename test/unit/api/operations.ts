// Operations for tests of the front alone: one administrator token holds, a few members answer,
// every other call throws. What the service really does is tested through a real server
// (test/scenario).

import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { attemptRate, createOriginRates, pollRate } from '../../../server/base/origin-rates.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { describeApi } from '../../../server/contract/api/openapi.ts';
import type { Grant } from '../../../server/domain/access.ts';
import type { SignInStep } from '../../../server/domain/sign-in.ts';
import { isStopped, type Tenant } from '../../../server/domain/tenant.ts';
import type { Vault } from '../../../server/domain/vault.ts';
import { createApiFront } from '../../../server/fronts/api/api-front.ts';
import { createAccess } from '../../../server/operations/access/access.ts';
import type { Operations } from '../../../server/operations/index.ts';
import type { SessionOperations } from '../../../server/operations/people/people-operations.ts';
import { createPreconditions } from '../../../server/operations/shared/preconditions.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { storedVault } from '../../support/stored.ts';

export const adminToken = 'dket_only-this-one-holds';
export const otherToken = 'dket_another-administrator';

/** What reached the log, for tests that look for what must not. */
export const logged: unknown[] = [];

const silentLog = {
  ...quietLog,
  error: (message: string, fields?: unknown) => void logged.push(message, fields),
};

const vault = (name: string, state: Vault['state'] = 'enabled') =>
  storedVault({
    ...{ id: '01981d2c-7c1f-7b35-9a04-52a1be40c0de', tenantId: '01981d2c-7c1f-7b35-9a04-52a1be40c001', name, state },
    createdAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  });

/** The first is the default one. */
export const tenants: readonly Tenant[] = (['default', 'other', 'paused'] as const).map((name, at) => ({
  ...newTenant(name, 0),
  id: `01981d2c-7c1f-7b35-9a04-52a1be40c00${at + 1}`,
  state: name === 'paused' ? 'suspended' : 'active',
}));

export interface FrontUnderTest {
  readonly request: (path: string, init?: RequestInit) => Promise<Response>;
  /** Times each operation was called, by name. */
  readonly calls: ReadonlyMap<string, number>;
  /** Times a caller was looked up. */
  readonly looks: () => number;
  /** Limits that have refused. */
  readonly refusals: readonly string[];
  /** Milliseconds by which the clock is moved ahead. */
  advance(milliseconds: number): void;
  revoke(): void;
  /** Other roles of the same callers, from now on. */
  regrant(grants: readonly Grant[]): void;
  /** A unit of work, as an operation makes one for its change. */
  inUnit<T>(work: () => T): Promise<T>;
}

/**
 * Sessions without a store: what they promise on their own is tested in
 * test/unit/operations/people.test.ts.
 */
const createSessionsOfTest = (
  grantsNow: () => readonly Grant[],
  isRevoked: () => boolean,
  looked: () => void,
): SessionOperations => {
  const open = new Set<string>();
  let made = 0;
  const expiresAt = Date.UTC(2026, 0, 1, 12);
  const refuse = (): never => {
    throw new ServiceError('unauthenticated', 'the session expired or was ended');
  };
  const callerOf = (value: string, requestId: string, peer: string | null) => ({
    actor: { kind: 'administrator', id: 'token-1', name: 'the tester', requestId, peer } as const,
    grants: value.startsWith('unfinished') ? [] : grantsNow(),
    sessionId: value,
    expiresAt,
    missing: value.startsWith('unfinished-') ? (value.slice('unfinished-'.length) as SignInStep) : null,
  });
  const unexpected = (): never => {
    throw new Error('the test expects no such call of sessions');
  };
  return {
    authenticate: async (value, requestId, peer) => {
      looked();
      return (open.has(value) && !isRevoked()) || value.startsWith('unfinished-')
        ? callerOf(value, requestId, peer)
        : refuse();
    },
    startByToken: async (token, { requestId, peer, before }) => {
      if (token !== adminToken || isRevoked()) refuse();
      if (before !== undefined) open.delete(before);
      made += 1;
      const value = String(made).padStart(43, 'v');
      open.add(value);
      return { ...callerOf(value, requestId, peer), value };
    },
    signOut: async (value) => void open.delete(value),
    list: unexpected,
    end: unexpected,
    rotateKey: unexpected,
  };
};

/** What Node would have of a request, as a stream of HTTP/2: the fronts read bodies from there. */
const incomingOf = ({ headers, body }: Request): Readable => {
  const stream = body === null ? Readable.from([]) : Readable.fromWeb(body as WebStream<Uint8Array>);
  Object.defineProperty(stream, 'complete', { get: () => stream.readableEnded });
  return Object.assign(stream, { headers: Object.fromEntries(headers), httpVersionMajor: 2, socket: { bytesRead: 0 } });
};

/** The front, reached as through the listener: absolute https URLs. */
export const openFront = (
  members: object = {},
  first: readonly Grant[] = [{ role: 'administrator', scope: null, tenantId: null }],
  /** Called when the unit of work of a change has had to wait, and begins. */
  { beforeUnit = () => undefined }: { readonly beforeUnit?: () => void } = {},
): FrontUnderTest => {
  let grants = first;
  const calls = new Map<string, number>();
  const refusals: string[] = [];
  let time = Date.UTC(2026, 0, 1);
  let revoked = false;
  let current: Vault | undefined;
  // The conditions are the real ones. What a unit of work reads is tested with the real store.
  const read = { tenants: { stored: async (id: string) => tenants.find((each) => each.id === id) } };
  const { store, operations: preconditions } = createPreconditions({
    read,
    write: async (work: (tx: typeof read) => Promise<unknown>) => {
      beforeUnit();
      return work(read);
    },
  } as unknown as Store);
  const inUnit = <T>(work: () => T): Promise<T> => store.write(async () => work());
  const answers: Readonly<Record<string, unknown>> = {
    'vaults.create': (_actor: unknown, { name }: { name: string }) =>
      inUnit(() => {
        current = vault(name);
        return current;
      }),
    'vaults.get': () => {
      if (current === undefined) throw new ServiceError('not-found', 'no such vault');
      return current;
    },
    'vaults.disable': () =>
      inUnit(() => {
        current = vault(current?.name ?? '', 'disabled');
        return current;
      }),
    'vaults.list': (_actor: unknown, query: unknown) => ({ items: [], next: JSON.stringify(query) }),
    // The sign-in page's request before a sign-in.
    'openId.label': () => null,
    'signIn.hasPasskeys': () => false,
    ...members,
  };
  let looks = 0;
  const looked = (): void => {
    looks += 1;
  };
  const call = async (name: string, ...values: unknown[]): Promise<unknown> => {
    calls.set(name, (calls.get(name) ?? 0) + 1);
    const answer = answers[name];
    if (typeof answer !== 'function') throw new Error(`the test expects no call of ${name}`);
    return answer(...values);
  };
  const operations = new Proxy(
    {
      access: createAccess({
        store,
        directory: {
          tenant: (name) => tenants.find(({ id, name: own }) => id === name || own === name),
          defaultTenantId: () => tenants[0]?.id ?? '',
          stopOf: (id) => {
            const found = tenants.find((tenant) => tenant.id === id);
            return found === undefined ? 'deleted' : isStopped(found);
          },
        },
      }),
      idempotency: {
        once: async (_: unknown, work: () => Promise<unknown>) => ({ kept: await work(), repeated: false }),
      },
      preconditions,
      confirm: () => undefined,
      observe: async (work: () => Promise<unknown>) => ({
        value: await work(),
        pendingNodes: [],
        pendingUntil: null,
      }),
      authenticateAdmin: async (token: string, requestId: string, peer: string | null) => {
        looked();
        const id = token === adminToken && !revoked ? 'token-1' : token === otherToken ? 'token-2' : null;
        if (id === null) throw new ServiceError('unauthenticated', 'the token is invalid, expired or revoked');
        return { actor: { kind: 'administrator', id, name: 'the tester', requestId, peer }, grants };
      },
      signIn: new Proxy<Record<string, unknown>>(
        { ...createOriginRates({ monotonic: () => time }, attemptRate) },
        {
          get: (own, name: string) => own[name] ?? ((...values: unknown[]) => call(`signIn.${name}`, ...values)),
        },
      ),
      deviceSignIn: new Proxy<Record<string, unknown>>(
        { ...createOriginRates({ monotonic: () => time }, pollRate) },
        {
          get: (own, name: string) => own[name] ?? ((...values: unknown[]) => call(`deviceSignIn.${name}`, ...values)),
        },
      ),
      sessions: createSessionsOfTest(
        () => grants,
        () => revoked,
        looked,
      ),
    } as Record<string, unknown>,
    {
      get: (target, group: string) =>
        target[group] ??
        new Proxy(() => undefined, {
          get:
            (_, name: string) =>
            (...values: unknown[]) =>
              call(`${group}.${name}`, ...values),
          apply: (_, __, values: unknown[]) => call(group, ...values),
        }),
    },
  ) as unknown as Operations;
  const front = createApiFront({
    operations,
    clock: { now: () => time, monotonic: () => time },
    log: silentLog,
    document: () => JSON.stringify(describeApi('0.0.0')),
    peerOf: () => null,
    refused: (limit) => refusals.push(limit),
    afterSent: () => undefined,
  });
  return {
    request: async (path, init) => {
      const url = `https://dke.example${path.replace(/^\/api/, '')}`;
      const { body: _, ...head } = init ?? {};
      return front.request(url, head, { incoming: incomingOf(new Request(url, init)) });
    },
    calls,
    looks: () => looks,
    refusals,
    advance: (milliseconds) => {
      time += milliseconds;
    },
    revoke: () => {
      revoked = true;
    },
    regrant: (given) => {
      grants = given;
    },
    inUnit,
  };
};

export const withToken = (init: RequestInit = {}, token = adminToken): RequestInit => ({
  ...init,
  headers: { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string> | undefined) },
});

export const post = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
