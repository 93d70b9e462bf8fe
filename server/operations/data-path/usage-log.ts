// Counts uses in memory and writes them in batches (ports/usage-log.ts). What a crash can lose are counters and last-use
// times of the last seconds, never a first use: that is written before the request continues.

import { newId } from '../../base/ids.ts';
import { Repeats } from '../../base/repeats.ts';
import type { Instance } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Denial, InstanceUse, UsageLog } from '../../ports/usage-log.ts';
import { FirstUses } from './first-uses.ts';
import { recordBatch, UsageCounts } from './usage-batch.ts';

type UsagePorts = Pick<Ports, 'store' | 'clock' | 'log'>;

/** Instances kept in memory; an application whose instances never end (a new host name every call) does not fill it. */
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

/** `instancesEach`: of one application, those that are kept. */
export const createUsageLog = (ports: UsagePorts, instancesEach: number): UsageLog => {
  const { store, clock, log } = ports;
  const counts = new UsageCounts(clock.now());
  const firstUses = new FirstUses(clock);
  const start = instanceStart(ports, counts, firstUses, instancesEach);
  const recounted: { readonly denial: Denial; readonly count: number }[] = [];
  /** A heartbeat of every three seconds that is refused gives a record, then one after a minute, two, four, up to one an hour. */
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
        // Audit events are on the disk before anything else happens; counters and times are not waited for.
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
