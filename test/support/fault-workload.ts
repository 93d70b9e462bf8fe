// A client that keeps its own book of what the service has acknowledged, for tests that end the
// service at any moment: master keys of a database and keys of a cloud, in every step of their
// lives, over the real TDE, XKS and console APIs. What was under way when the service went is
// either done or not; everything else must be as the book says.

import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import type { Root } from '../../server/contract/api/root-routes.ts';
import type { Status } from '../../server/contract/api/status-routes.ts';
import type { TdeRoutes } from '../../server/contract/tde.ts';
import { type ConsoleApi, createGroup, openConsoleApi, registerApplication } from './console-api.ts';
import { type FaultTenant, openFaultTenant } from './fault-tenant.ts';
import { masterKey } from './open-service.ts';
import { chance } from './property.ts';
import type { ServerProcess } from './server-process.ts';
import { callTdeRoute, Refused } from './tde-route.ts';
import { callXks, requestMetadata } from './xks-client.ts';

/** States of a master key: as the book has it, or one of two when an operation had no answer. */
type Life = 'active' | 'soft-deleted' | 'imported again' | 'destroyed';
interface MasterEntry {
  readonly label: string;
  readonly id: string;
  readonly handle: number;
  readonly sealed: Buffer;
  state: Life;
  /** What it may have become. */
  pending: Life | undefined;
  /** True during a decryption with the key, which would import a soft-deleted key again. */
  inUse: boolean;
}
interface CloudEntry {
  readonly id: string;
  versions: number;
  disabled: boolean;
  /** A call without an answer: it may have had its effect. */
  pending: 'rotate' | 'enable' | 'disable' | undefined;
}

const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7).toString('base64') } as const;
const plaintext = Buffer.alloc(32, 0x5a);

export interface WorkloadOptions {
  /**
   * What it does next to making, using, soft-deleting, importing again, destroying, rotating and
   * switching keys.
   */
  readonly rotations?: boolean;
  /** An integer: the same seed selects the same operations. */
  readonly seed: number;
}

/**
 * Each to its very end: behind a destruction, a purge and a rotation the erasure run belongs to it.
 */
export const faultOperations = [
  'create',
  'rotate',
  'soft-delete',
  'import again',
  'destroy',
  'rotate the root',
  'rotate a tenant',
  'make a snapshot',
  'restore a snapshot',
  'purge a tenant',
] as const;
export type Operation = (typeof faultOperations)[number];

/** The service has ended: no answer arrived, or half of one. */
export const isGone = (error: unknown): boolean =>
  ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE'].includes(
    String((error as NodeJS.ErrnoException).code),
  ) || /socket hang up|aborted|other side closed/.test(String((error as Error).message));

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** No call of the API waits for background work: this polls its state for as long as it takes. */
const askAgainMs = 10;

export interface Workload {
  /**
   * Waits until nothing continues behind the answers: no rotation, no erasure run. 'failed': one
   * waits to be tried again.
   */
  settle(): Promise<'settled' | 'failed'>;
  /** Works until the service ends or `until` returns true. */
  run(until: () => boolean): Promise<void>;
  /**
   * Compares everything with the recorded answers; returns the faults. `all`: also what has not
   * changed since the last comparison.
   */
  check(all: boolean): Promise<readonly string[]>;
  /**
   * Makes what one operation needs, then the operation alone, to its very end: an erasure run
   * behind it belongs to it.
   */
  prepare(what: Operation): Promise<() => Promise<void>>;
  /** Makes a small change, whose acknowledgement shows that the store accepts changes. */
  change(): Promise<void>;
  /** Data are decrypted, for a database and for the cloud; throws when they are not. */
  serve(): Promise<void>;
  /** Takes keys out of the book that are known to be lost; answers how many there were. */
  forget(lost: ReadonlySet<string>): number;
  /** How many operations were acknowledged. */
  acknowledged(): Readonly<Record<string, number>>;
}

export const openWorkload = async (
  /** The server that runs now; it is checked with each call. */
  place: { readonly server: ServerProcess },
  token: string,
  { rotations = false, seed }: WorkloadOptions,
): Promise<Workload> => {
  const random = chance(seed);
  const api = (): ConsoleApi => openConsoleApi(place.server, token);
  const group = await createGroup(api(), `faults ${seed}`);
  const { accessGuid, application } = await registerApplication(api(), `faults ${seed}`, group);
  const vault = await api().call<{ id: string }>('POST', '/api/vaults', { name: `faults ${seed}` });
  const cloudKey = await api().call<{ id: string }>('POST', '/api/keys', { name: 'cloud', vaultId: vault.id });
  const endpoint = await api().call<{ id: string }>('POST', '/api/endpoints', {
    name: `faults ${seed}`,
    vaultId: vault.id,
    keyId: cloudKey.id,
  });
  const configuration = await api().call<ProxyConfiguration>('POST', `/api/endpoints/${endpoint.id}/credentials`);
  const masters: MasterEntry[] = [];
  const clouds: CloudEntry[] = [];
  const touched = new Set<string>([cloudKey.id]);
  const wraps: { readonly body: object }[] = [];
  const counts: Record<string, number> = {};
  let made = 0;

  const done = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  const erasure = async () => (await api().call<Status>('GET', '/api/status')).erasure;
  /**
   * Waits for the end of an erasure run. A failed one is retried much later, and this does not wait
   * for it.
   */
  const untilErased = async (isErased: () => Promise<boolean>): Promise<void> => {
    while (!(await isErased())) {
      const { state, failure } = await erasure();
      if (state === 'failed' || state === 'blocked')
        throw new Refused('erasure', `the erasure run: ${failure ?? state}`);
      await pause(askAgainMs);
    }
  };
  const isRotated = async () => !(await api().call<Root>('GET', '/api/root')).rotating;
  const tenant: FaultTenant = await openFaultTenant(place, token, seed, done, untilErased);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];

  const tde = <R extends keyof TdeRoutes>(
    route: R,
    head: TdeRoutes[R]['head'],
    options: { readonly handle?: number; readonly raw?: Uint8Array } = {},
  ) => callTdeRoute(place.server, { accessGuid, appId: application.appId }, route, head, options);
  const xks = async (target: string, body: object) =>
    callXks({ server: place.server, configuration }, { target: `/keys/${cloudKey.id}/${target}`, body });

  const makeMaster = async (): Promise<void> => {
    made += 1;
    const label = `master ${seed} ${made}`;
    const { head } = await tde('generateKey', masterKey(label));
    done('create');
    const { raw } = await tde('encrypt', cbc, { handle: head.handle, raw: plaintext });
    masters.push({
      label,
      id: head.id,
      handle: head.handle,
      sealed: raw,
      state: 'active',
      pending: undefined,
      inUse: false,
    });
    touched.add(head.id);
  };
  /** The book is written before the call, and again behind its answer. */
  const become = async (entry: MasterEntry, state: Life, what: string, work: () => Promise<unknown>): Promise<void> => {
    entry.pending = state;
    touched.add(entry.id);
    await work();
    entry.state = state;
    entry.pending = undefined;
    done(what);
  };
  const decrypt = (entry: MasterEntry): Promise<{ readonly raw: Buffer }> =>
    tde('decrypt', cbc, { handle: entry.handle, raw: entry.sealed });

  const masterSteps: readonly (() => Promise<void>)[] = [
    makeMaster,
    async () => {
      const entry = pick(
        masters.filter(({ state, inUse }) => !inUse && (state === 'active' || state === 'imported again')),
      );
      if (entry === undefined) return makeMaster();
      await become(entry, 'soft-deleted', 'soft-delete', () => api().call('DELETE', `/api/keys/${entry.id}`));
    },
    async () => {
      const entry = pick(masters.filter(({ state }) => state === 'soft-deleted'));
      if (entry === undefined) return makeMaster();
      await become(entry, 'imported again', 'import again', () => decrypt(entry));
    },
    async () => {
      const entry = pick(masters.filter(({ state }) => state !== 'destroyed'));
      if (entry === undefined) return makeMaster();
      await become(entry, 'destroyed', 'destroy', () => tde('destroyObject', {}, { handle: entry.handle }));
    },
  ];
  const cloudRotation = async (): Promise<void> => {
    await api().call('POST', `/api/keys/${cloudKey.id}/rotate`);
    done('rotate');
  };
  const cloudSteps: readonly (() => Promise<void>)[] = [
    async () => {
      made += 1;
      const { id } = await api().call<{ id: string }>('POST', '/api/keys', { name: `key ${made}`, vaultId: vault.id });
      clouds.push({ id, versions: 1, disabled: false, pending: undefined });
      touched.add(id);
      done('create');
    },
    async () => {
      const entry = pick(clouds.filter(({ disabled }) => !disabled));
      if (entry === undefined) return;
      entry.pending = 'rotate';
      touched.add(entry.id);
      await api().call('POST', `/api/keys/${entry.id}/rotate`);
      entry.versions += 1;
      entry.pending = undefined;
      done('rotate');
    },
    async () => {
      const entry = pick(clouds);
      if (entry === undefined) return;
      const what = entry.disabled ? 'enable' : 'disable';
      entry.pending = what;
      touched.add(entry.id);
      await api().call('POST', `/api/keys/${entry.id}/${what}`);
      entry.disabled = what === 'disable';
      entry.pending = undefined;
      done(what);
    },
    async () => cloudRotation(),
  ];
  const traffic = async (): Promise<void> => {
    const sealed = await xks('encrypt', {
      requestMetadata: requestMetadata(),
      plaintext: plaintext.toString('base64'),
      encryptionAlgorithm: 'AES_GCM',
    });
    if (sealed.status !== 200) throw new Refused('xks', JSON.stringify(sealed.body));
    if (wraps.length < 200) wraps.push({ body: sealed.body });
    else wraps[Math.floor(random() * wraps.length)] = { body: sealed.body };
    done('encrypt');
    const before = pick(wraps);
    if (before !== undefined) await opensWrap(before.body);
    const entry = pick(masters.filter(({ state, pending }) => state === 'active' && pending === undefined));
    if (entry === undefined) return;
    entry.inUse = true;
    const { raw } = await decrypt(entry)
      .catch((error: unknown) => {
        // Another step destroyed it in the meantime.
        if (error instanceof Refused && (entry.state !== 'active' || entry.pending !== undefined))
          return { raw: plaintext };
        throw error;
      })
      .finally(() => {
        entry.inUse = false;
      });
    if (!raw.equals(plaintext)) throw new Error(`${entry.label} decrypts to something else`);
    done('decrypt');
  };
  const opensWrap = async (sealed: object): Promise<void> => {
    const opened = await xks('decrypt', {
      requestMetadata: requestMetadata({ kmsOperation: 'Decrypt' }),
      encryptionAlgorithm: 'AES_GCM',
      ...sealed,
    });
    if (opened.status !== 200 || opened.body.plaintext !== plaintext.toString('base64'))
      throw new Refused('xks', `a ciphertext of the cloud does not open: ${JSON.stringify(opened.body)}`);
  };
  const rotate = async (): Promise<void> => {
    const tenants = await api().call<{ items: readonly { id: string }[] }>('GET', '/api/tenants');
    const tenantId = random() < 0.5 ? pick(tenants.items)?.id : undefined;
    const { status, text } = await api().send('POST', '/api/root/rotate', tenantId === undefined ? {} : { tenantId });
    if (status === 200) done('rotate the root or a tenant');
    // One of a tenant is under way.
    else if (status !== 409) throw new Refused('root', text);
    // A pace of the workload's own: rotations meet everything else in every order.
    await pause(20 + random() * 100);
  };

  const settle = async (): Promise<'settled' | 'failed'> => {
    for (;;) {
      const { state, pendingKeys } = await erasure();
      if (state === 'failed' || state === 'blocked') return 'failed';
      if (state === 'idle' && pendingKeys === 0 && (await isRotated())) return 'settled';
      await pause(askAgainMs);
    }
  };
  /**
   * A running server may be too busy and close the connection: this tries again. A server that has
   * ended is a fault.
   */
  const persistently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let tries = 1; ; tries += 1)
      try {
        return await work();
      } catch (error) {
        const { exitCode, signalCode } = place.server.child;
        if (!isGone(error) || tries >= 5 || exitCode !== null || signalCode !== null) throw error;
      }
  };
  const apart = async (): Promise<void> => {
    const chosen = random();
    if (chosen < 0.45) {
      await tenant.spoil();
      await tenant.restore();
    } else if (chosen < 0.9) await tenant.snapshot();
    else await (await tenant.toPurge())();
    // A pace of the workload's own: operations on tenants meet everything else in every order.
    await pause(random() * 50);
  };

  const checkMaster = async (entry: MasterEntry): Promise<string | undefined> => {
    const key = await api().call<{ state: string; reimportedAt: string | null }>('GET', `/api/keys/${entry.id}`);
    const state = key.state === 'soft-deleted' && key.reimportedAt !== null ? 'imported again' : key.state;
    const possible = entry.pending === undefined ? [entry.state] : [entry.state, entry.pending];
    if (!possible.some((each) => each === state))
      return `${entry.label} is ${state}, the book says ${possible.join(' or ')}`;
    entry.state = state as Life;
    entry.pending = undefined;
    if (state === 'destroyed') {
      const opened = await decrypt(entry).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Refused) return false;
          throw error;
        },
      );
      return opened ? `${entry.label} is destroyed, and decrypts` : undefined;
    }
    // Its use imports a soft-deleted one again.
    if (state === 'soft-deleted') return undefined;
    const { raw } = await decrypt(entry);
    return raw.equals(plaintext) ? undefined : `${entry.label} decrypts to something else`;
  };
  const checkCloud = async (entry: CloudEntry): Promise<string | undefined> => {
    const key = await api().call<{ state: string; currentVersion: number }>('GET', `/api/keys/${entry.id}`);
    const most = entry.versions + (entry.pending === 'rotate' ? 1 : 0);
    if (key.currentVersion < entry.versions || key.currentVersion > most)
      return `key ${entry.id} is at version ${key.currentVersion}, the book says ${entry.versions}`;
    const disabled = key.state === 'disabled';
    if (disabled !== entry.disabled && entry.pending !== (disabled ? 'disable' : 'enable'))
      return `key ${entry.id} is ${key.state}, the book says otherwise`;
    Object.assign(entry, { versions: key.currentVersion, disabled, pending: undefined });
    return undefined;
  };

  return {
    settle,
    run: async (until) => {
      const worker = async (step: () => Promise<void>): Promise<void> => {
        for (;;) {
          if (until()) return;
          try {
            await step();
          } catch (error) {
            if (isGone(error)) return;
            throw error;
          }
        }
      };
      const oneOf = (steps: readonly (() => Promise<void>)[]) => () => (pick(steps) ?? makeMaster)();
      await Promise.all([
        worker(oneOf(masterSteps)),
        worker(oneOf(cloudSteps)),
        worker(traffic),
        worker(apart),
        ...(rotations ? [worker(rotate)] : []),
      ]);
    },
    check: async (all) => {
      const wrong: string[] = [];
      const look = async (id: string, work: () => Promise<string | undefined>): Promise<void> => {
        if (!all && !touched.has(id)) return;
        const found = await persistently(work).catch((error: unknown) => `${id}: ${String(error)}`);
        if (found !== undefined) wrong.push(found);
      };
      for (const entry of masters) await look(entry.id, () => checkMaster(entry));
      for (const entry of clouds) await look(entry.id, () => checkCloud(entry));
      for (const { body } of all ? wraps : wraps.slice(-5))
        await look(cloudKey.id, () => opensWrap(body).then(() => undefined));
      wrong.push(
        ...(await persistently(() => tenant.check(all)).catch((error: unknown) => [
          `the tenant apart: ${String(error)}`,
        ])),
      );
      // Whatever was cut off: a key that is destroyed is unrecoverable when the erasure run is
      // over.
      const destroyed = masters.filter(({ state, id }) => state === 'destroyed' && (all || touched.has(id)));
      if (destroyed.length > 0 && wrong.length === 0 && (await settle()) === 'settled')
        for (const { id, label } of destroyed) {
          const path = `/api/tde/applications/${application.id}/master-keys/${id}`;
          const { unrecoverableAt } = await api().call<{ unrecoverableAt: string | null }>('GET', path);
          if (unrecoverableAt === null) wrong.push(`${label} is destroyed, and no erasure run has taken it`);
        }
      touched.clear();
      touched.add(cloudKey.id);
      return wrong;
    },
    prepare: async (what) => {
      if (what === 'create') return makeMaster;
      if (what === 'rotate') return cloudRotation;
      if (what === 'rotate the root' || what === 'rotate a tenant')
        return async () => {
          await api().call('POST', '/api/root/rotate', what === 'rotate a tenant' ? { tenantId: tenant.tenantId } : {});
          done('rotate the root or a tenant');
          await untilErased(isRotated);
        };
      if (what === 'make a snapshot') return tenant.snapshot;
      if (what === 'purge a tenant') return tenant.toPurge();
      if (what === 'restore a snapshot') {
        await tenant.spoil();
        return tenant.restore;
      }
      await makeMaster();
      const entry = masters.at(-1);
      if (entry === undefined) throw new Error('there is no key');
      const remove = () =>
        become(entry, 'soft-deleted', 'soft-delete', () => api().call('DELETE', `/api/keys/${entry.id}`));
      if (what === 'soft-delete') return remove;
      if (what === 'import again') {
        await remove();
        return () =>
          become(entry, 'imported again', 'import again', async () => {
            await decrypt(entry);
            // A full disk does not hinder the decryption, by the sealed copy; the import is for
            // later.
            const key = await api().call<{ reimportedAt: string | null }>('GET', `/api/keys/${entry.id}`);
            if (key.reimportedAt === null) throw new Refused('not-imported', `${entry.label} is not imported again`);
          });
      }
      return async () => {
        await become(entry, 'destroyed', 'destroy', () => tde('destroyObject', {}, { handle: entry.handle }));
        const path = `/api/tde/applications/${application.id}/master-keys/${entry.id}`;
        await untilErased(
          async () => (await api().call<{ unrecoverableAt: string | null }>('GET', path)).unrecoverableAt !== null,
        );
      };
    },
    change: async () => {
      made += 1;
      await api().call('POST', '/api/vaults', { name: `change ${seed} ${made}` });
    },
    serve: async () => {
      for (const { body } of wraps.slice(-3)) await opensWrap(body);
      const entry = masters.find(({ state, pending }) => state === 'active' && pending === undefined);
      if (entry === undefined) return;
      const { raw } = await decrypt(entry);
      if (!raw.equals(plaintext)) throw new Error(`${entry.label} decrypts to something else`);
    },
    forget: (lost) => {
      const before = masters.length + clouds.length;
      for (const book of [masters, clouds]) {
        const left = (book as { readonly id: string }[]).filter(({ id }) => !lost.has(id));
        book.splice(0, book.length, ...(left as never[]));
      }
      for (const id of lost) touched.delete(id);
      return before - masters.length - clouds.length;
    },
    acknowledged: () => counts,
  };
};
