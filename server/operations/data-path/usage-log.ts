// Counts uses in memory and writes them in batches (ports/usage-log.ts). What a crash can lose are
// counters and last-use times of the last seconds, never a first use: that is written before the
// request continues.

import { newId, serviceTenantId } from '../../base/ids.ts';
import { Repeats } from '../../base/repeats.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Instance, TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Denial, InstanceUse, UsageLog } from '../../ports/usage-log.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { FirstUses } from './first-uses.ts';

/**
 * Uses are counted since the last write: other nodes count those of the same instance that they
 * see.
 */
export interface Tracked {
  readonly id: string;
  seen: Pick<Instance, 'libraryVersion' | 'agentVersion' | 'pid' | 'lastUsedAt'>;
  uses: number;
}

interface Refusal {
  readonly channel: string;
  readonly reason: string;
  readonly application: Pick<TdeApplication, 'id' | 'name' | 'tenantId'> | null;
  lastRequestId: string | null;
  count: number;
}

interface Summary {
  readonly application: TdeApplication;
  from: number;
  readonly operations: Map<string, number>;
  failures: number;
}

export interface UsageBatch {
  readonly now: number;
  readonly used: readonly {
    readonly name: string;
    readonly tracked: Tracked;
    readonly seen: Tracked['seen'];
    readonly uses: number;
  }[];
  readonly keys: readonly (readonly [string, { readonly first: number; readonly last: number }])[];
  readonly guids: readonly (readonly [string, number])[];
  readonly tokens: readonly (readonly [string, number])[];
  readonly due: readonly Summary[];
  readonly refused: readonly Refusal[];
  /** Since when these refusals were counted. */
  readonly refusedSince: number;
}

const summaryEvery = 60_000;

export class UsageCounts {
  readonly instances = new Map<string, Tracked>();
  readonly #keyUses = new Map<string, { readonly first: number; readonly last: number }>();
  readonly #guidUses = new Map<string, number>();
  readonly #tokenUses = new Map<string, number>();
  readonly #summaries = new Map<string, Summary>();
  readonly #refusals = new Map<string, Refusal>();
  #refusalsSince: number;

  constructor(now: number) {
    this.#refusalsSince = now;
  }

  guidUsed(id: string, now: number): void {
    this.#guidUses.set(id, now);
  }

  tokenUsed(id: string, now: number): void {
    this.#tokenUses.set(id, now);
  }

  used(application: TdeApplication, keyId: string, operation: string, succeeded: boolean, now: number): void {
    if (succeeded) this.#keyUses.set(keyId, { first: this.#keyUses.get(keyId)?.first ?? now, last: now });
    let summary = this.#summaries.get(application.id);
    if (summary === undefined) {
      summary = { application, from: now, operations: new Map(), failures: 0 };
      this.#summaries.set(application.id, summary);
    }
    summary.operations.set(operation, (summary.operations.get(operation) ?? 0) + 1);
    if (!succeeded) summary.failures += 1;
  }

  refused(refusal: Omit<Refusal, 'count'>): void {
    const name = `${refusal.channel} ${refusal.reason} ${refusal.application?.id}`;
    const known = this.#refusals.get(name);
    if (known === undefined) {
      this.#refusals.set(name, { ...refusal, count: 1 });
    } else {
      known.count += 1;
      known.lastRequestId = refusal.lastRequestId;
    }
  }

  /** Takes out what is to be written; `all` also what could wait. */
  take(now: number, all: boolean): UsageBatch {
    const isDue = (since: number): boolean => all || now - since >= summaryEvery;
    const batch: UsageBatch = {
      now,
      used: [...this.instances].flatMap(([name, tracked]) =>
        tracked.uses === 0 ? [] : [{ name, tracked, seen: tracked.seen, uses: tracked.uses }],
      ),
      keys: [...this.#keyUses],
      guids: [...this.#guidUses],
      tokens: [...this.#tokenUses],
      due: [...this.#summaries.values()].filter(({ from }) => isDue(from)),
      refused: isDue(this.#refusalsSince) ? [...this.#refusals.values()] : [],
      refusedSince: this.#refusalsSince,
    };
    for (const { tracked } of batch.used) tracked.uses = 0;
    this.#keyUses.clear();
    this.#guidUses.clear();
    this.#tokenUses.clear();
    for (const { application } of batch.due) this.#summaries.delete(application.id);
    if (batch.refused.length > 0) {
      this.#refusals.clear();
      this.#refusalsSince = now;
    }
    return batch;
  }

  /** Adds a batch that could not be written to what was counted in the meantime. */
  putBack({ used, keys, guids, tokens, due, refused, refusedSince }: UsageBatch): void {
    for (const { tracked, uses } of used) tracked.uses += uses;
    for (const [id, { first, last }] of keys)
      this.#keyUses.set(id, { first, last: this.#keyUses.get(id)?.last ?? last });
    for (const [id, at] of guids) if (!this.#guidUses.has(id)) this.#guidUses.set(id, at);
    for (const [id, at] of tokens) if (!this.#tokenUses.has(id)) this.#tokenUses.set(id, at);
    for (const summary of due) {
      const newer = this.#summaries.get(summary.application.id);
      this.#summaries.set(summary.application.id, summary);
      for (const [operation, count] of newer?.operations ?? [])
        summary.operations.set(operation, (summary.operations.get(operation) ?? 0) + count);
      summary.failures += newer?.failures ?? 0;
    }
    if (refused.length > 0) this.#refusalsSince = refusedSince;
    for (const refusal of refused) {
      const name = `${refusal.channel} ${refusal.reason} ${refusal.application?.id}`;
      const newer = this.#refusals.get(name);
      this.#refusals.set(name, {
        ...refusal,
        count: refusal.count + (newer?.count ?? 0),
        lastRequestId: newer?.lastRequestId ?? refusal.lastRequestId,
      });
    }
  }
}

const recordSummary = (tx: Repositories, { application, from, operations, failures }: Summary, now: number) =>
  recordEvent(
    tx,
    'application.used',
    { kind: 'application', id: application.id, name: application.name, requestId: 'summary', peer: null },
    about('application', application),
    { from: toRfc3339(from), to: toRfc3339(now), operations: Object.fromEntries(operations), failures },
  );

const recordRefusal = (tx: Repositories, { channel, reason, count, application, lastRequestId }: Refusal) =>
  tx.audit.append({
    kind: 'authentication.failed',
    actor: serviceActor('summary'),
    tenantId: application?.tenantId ?? serviceTenantId,
    subject: application === null ? { kind: 'service', id: channel } : { kind: 'application', id: application.id },
    details: {
      channel,
      reason,
      count,
      ...(application === null ? {} : { applicationId: application.id, name: application.name, lastRequestId }),
    },
  });

/** `replaced`: told of an instance that is in the store no longer; its next use is a first one. */
export const recordBatch = async (
  tx: Repositories,
  { now, used, keys, guids, tokens, due, refused }: UsageBatch,
  replaced: (name: string) => void,
): Promise<void> => {
  for (const { name, tracked, seen, uses } of used)
    if (!(await tx.instances.addUses(tracked.id, { ...seen, uses }))) replaced(name);
  for (const [id, { first, last }] of keys) await tx.keys.touch(id, first, last);
  for (const [id, at] of guids) await tx.accessGuids.touch(id, at);
  for (const [id, at] of tokens) await tx.tokens.touch(id, at);
  for (const summary of due) await recordSummary(tx, summary, now);
  for (const refusal of refused) await recordRefusal(tx, refusal);
};

type UsagePorts = Pick<Ports, 'store' | 'clock' | 'log'>;

/**
 * Instances kept in memory; an application whose instances never end (a new host name every call)
 * does not fill it.
 */
const mostInstances = 20_000;

const cut = (text: string): string => text.slice(0, 255);
const nameOf = (use: Pick<Instance, 'accessGuidId' | 'appId' | 'host' | 'process' | 'osUser'>): string =>
  JSON.stringify([use.accessGuidId, use.appId, use.host, use.process, use.osUser]);

/** Records an instance that this node has not seen since its start. */
const instanceStart = (
  { store, clock, log }: UsagePorts,
  { instances }: UsageCounts,
  firstUses: FirstUses,
  instancesEach: number,
) => {
  const enter = async (name: string, use: InstanceUse, requestId: string, peer: string | null): Promise<void> => {
    const now = clock.now();
    let isRecorded: boolean | undefined;
    const seen = { libraryVersion: use.library, agentVersion: use.agent, pid: use.pid, lastUsedAt: now };
    const id = await store.write(async (tx) => {
      const known = await tx.instances.find(use);
      const own = known?.id ?? newId(now);
      if (known === undefined)
        await tx.instances.insert({
          ...seen,
          id: own,
          applicationId: use.application.id,
          accessGuidId: use.accessGuidId,
          appId: use.appId,
          host: use.host,
          process: use.process,
          osUser: use.osUser,
          firstUsedAt: now,
          uses: 1,
        });
      else await tx.instances.addUses(own, { ...seen, uses: 1 });
      await tx.accessGuids.touch(use.accessGuidId, now);
      if (known === undefined) {
        for (const old of await tx.instances.trim(use.application.id, instancesEach)) {
          instances.delete(nameOf(old));
          firstUses.replaced(old.applicationId);
        }
        const first = { use, requestId, peer };
        // The work of a transaction may be repeated; the first use is one.
        isRecorded ??= firstUses.admit(name, first);
        if (isRecorded) await firstUses.record(tx, first);
      }
      return own;
    });
    instances.set(name, { id, seen, uses: 0 });
    if (instances.size <= mostInstances) return;
    for (const [oldest, tracked] of instances)
      if (tracked.uses === 0) {
        instances.delete(oldest);
        break;
      }
  };

  const entering = new Map<string, Promise<void>>();
  return (name: string, use: InstanceUse, requestId: string, peer: string | null): Promise<void> => {
    const under = entering.get(name);
    if (under !== undefined) return under;
    const started = enter(name, use, requestId, peer)
      // A full disk must not stop a database from decrypting: the next call tries again.
      .catch((error: unknown) =>
        log.error('an instance could not be recorded', { applicationId: use.application.id, error }),
      )
      .finally(() => entering.delete(name));
    entering.set(name, started);
    return started;
  };
};

/** Keys whose first use this process remembers to have stored. */
const mostMarked = 10_000;

/** `instancesEach`: of one application, those that are kept. */
export const createUsageLog = (ports: UsagePorts, instancesEach: number): UsageLog => {
  const { store, clock, log } = ports;
  const counts = new UsageCounts(clock.now());
  /** Keys whose first use is stored, whatever the cache of objects has read of them. */
  const marked = new Set<string>();
  const firstUses = new FirstUses(clock);
  const start = instanceStart(ports, counts, firstUses, instancesEach);
  const recounted: { readonly denial: Denial; readonly count: number }[] = [];
  /**
   * A heartbeat of every three seconds that is refused gives a record, then one after a minute,
   * two, four, up to one an hour.
   */
  const denials = new Repeats<Denial>({
    now: () => clock.monotonic(),
    quietMs: 60_000,
    longestMs: 3_600_000,
    most: 10_000,
    mostOfFamily: 100,
    summary: (denial, count) => recounted.push({ denial, count }),
  });

  const writeDue = async (all: boolean): Promise<void> => {
    const batch = counts.take(clock.now(), all);
    denials.flush(all);
    const recounts = recounted.splice(0);
    const firsts = firstUses.take(all);
    const records = batch.due.length + batch.refused.length + recounts.length + firsts.length;
    if (records + batch.used.length + batch.keys.length + batch.guids.length + batch.tokens.length === 0) return;
    try {
      await store.write(
        async (tx) => {
          await recordBatch(tx, batch, (name) => counts.instances.delete(name));
          for (const { denial, count } of recounts)
            await tx.audit.append({ kind: 'key.denied', ...denial, details: { ...denial.details, count } });
          for (const { first, count } of firsts) await firstUses.record(tx, first, count);
        },
        // Audit events are on the disk before anything else happens; counters and times are not
        // waited for.
        { durable: all || records > 0 },
      );
    } catch (error) {
      counts.putBack(batch);
      recounted.unshift(...recounts);
      firstUses.putBack(firsts);
      log.error('uses could not be recorded; they are kept in memory', { error });
    }
  };

  let flushing: Promise<void> = Promise.resolve();
  return {
    seen: (given, requestId, peer) => {
      const use = {
        ...given,
        host: cut(given.host),
        process: cut(given.process),
        osUser: cut(given.osUser),
        library: cut(given.library),
        agent: cut(given.agent),
      };
      const name = nameOf(use);
      const tracked = counts.instances.get(name);
      if (tracked === undefined) return start(name, use, requestId, peer);
      const now = clock.now();
      tracked.seen = { libraryVersion: use.library, agentVersion: use.agent, pid: use.pid, lastUsedAt: now };
      tracked.uses += 1;
      counts.guidUsed(use.accessGuidId, now);
      return Promise.resolve();
    },
    used: (application, keyId, operation, succeeded) =>
      counts.used(application, keyId, operation, succeeded, clock.now()),
    first: async ({ id, tenantId }) => {
      if (marked.has(id)) return;
      const now = clock.now();
      await store.write(async (tx) => {
        const key = await tx.keys.get(tenantId, id);
        if (key === undefined || key.state === 'destroyed')
          throw new ServiceError('key-destroyed', 'the request that created the key was withdrawn');
        await tx.keys.touch(id, now, now);
      });
      if (marked.size >= mostMarked) marked.clear();
      marked.add(id);
    },
    refused: (channel, reason, of) =>
      counts.refused({
        channel,
        reason,
        application: of?.application ?? null,
        lastRequestId: of?.requestId ?? null,
      }),
    denied: async (denial) => {
      const { applicationId, label, operation, reason } = denial.details;
      // The label tells what is looked for; without one the object does.
      const name = JSON.stringify([applicationId, label === '' ? denial.subject.id : label, operation, reason]);
      if (!denials.admit(name, denial, applicationId)) return;
      try {
        await store.write((tx) => tx.audit.append({ kind: 'key.denied', ...denial }));
      } catch (error) {
        log.error('a denial could not be recorded', { keyId: denial.subject.id, error });
      }
    },
    tokenUsed: (id) => counts.tokenUsed(id, clock.now()),
    flush: (all) => {
      flushing = flushing.then(() => writeDue(all));
      return flushing;
    },
  };
};
