// Counts uses in memory and writes them in batches (ports/usage-log.ts). What a crash can lose are counters and last-use
// times of the last seconds, never a first use: that is written before the request goes on.

import { toRfc3339 } from '../../base/clock.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { Repeats } from '../../base/repeats.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Instance, TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Denial, InstanceUse, UsageLog } from '../../ports/usage-log.ts';

/** Uses are counted since the last write: other nodes count those of the same instance that they see. */
interface Tracked {
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
  readonly from: number;
  readonly operations: Map<string, number>;
  failures: number;
}

/** Instances kept in memory; an application whose instances never end (a new host name every call) does not fill it. */
const mostInstances = 20_000;
/** First uses of one application that are recorded one by one within an hour; the others are counted, and recorded once an hour. */
const firstUsesAnHour = 50;
const summaryEvery = 60_000;

const cut = (text: string): string => text.slice(0, 255);
const nameOf = (use: Pick<Instance, 'accessGuidId' | 'appId' | 'host' | 'process' | 'osUser'>): string =>
  JSON.stringify([use.accessGuidId, use.appId, use.host, use.process, use.osUser]);

interface FirstUse {
  readonly use: InstanceUse;
  readonly requestId: string;
  readonly peer: string | null;
}

/** `instancesEach`: of one application, those that are kept. */
export const createUsageLog = (
  { store, clock, log }: Pick<Ports, 'store' | 'clock' | 'log'>,
  instancesEach: number,
): UsageLog => {
  const instances = new Map<string, Tracked>();
  const beginning = new Map<string, Promise<void>>();
  const keyUses = new Map<string, { readonly first: number; readonly last: number }>();
  const guidUses = new Map<string, number>();
  const tokenUses = new Map<string, number>();
  const summaries = new Map<string, Summary>();
  const refusals = new Map<string, Refusal>();
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
  const uncounted: { readonly first: FirstUse; readonly count: number }[] = [];
  const firstUses = new Repeats<FirstUse>({
    now: () => clock.monotonic(),
    quietMs: 3_600_000,
    longestMs: 3_600_000,
    most: 10_000,
    mostOfFamily: firstUsesAnHour,
    summary: (first, count) => uncounted.push({ first, count }),
  });
  /** By application, since the last record of a first use. */
  const replaced = new Map<string, number>();
  let refusalsSince = clock.now();

  const auditFirstUse = async (tx: Repositories, { use, requestId, peer }: FirstUse, count?: number): Promise<void> => {
    const { application } = use;
    const gone = replaced.get(application.id) ?? 0;
    await tx.audit.append({
      kind: 'instance.first-used',
      actor: { kind: 'application', id: application.id, name: application.name, requestId, peer },
      tenantId: application.tenantId,
      subject: { kind: 'application', id: application.id },
      details: {
        accessGuidId: use.accessGuidId,
        appId: use.appId,
        host: use.host,
        process: use.process,
        osUser: use.osUser,
        libraryVersion: use.library,
        agentVersion: use.agent,
        pid: use.pid,
        ...(count === undefined ? {} : { count }),
        ...(gone === 0 ? {} : { replaced: gone }),
      },
    });
    replaced.delete(application.id);
  };

  const begin = async (name: string, use: InstanceUse, requestId: string, peer: string | null): Promise<void> => {
    const now = clock.now();
    let isRecorded: boolean | undefined;
    try {
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
            replaced.set(old.applicationId, (replaced.get(old.applicationId) ?? 0) + 1);
          }
          const first = { use, requestId, peer };
          // The work of a transaction may be repeated; the first use is one.
          isRecorded ??= firstUses.admit(name, first, use.application.id);
          if (isRecorded) await auditFirstUse(tx, first);
        }
        return own;
      });
      instances.set(name, { id, seen, uses: 0 });
      if (instances.size > mostInstances) {
        for (const [oldest, tracked] of instances)
          if (tracked.uses === 0) {
            instances.delete(oldest);
            break;
          }
      }
    } catch (error) {
      // A full disk must not stop a database from decrypting: the next call tries again.
      log.error('an instance could not be recorded', { applicationId: use.application.id, error });
    } finally {
      beginning.delete(name);
    }
  };

  const writeDue = async (all: boolean): Promise<void> => {
    const now = clock.now();
    const used = [...instances].flatMap(([name, tracked]) =>
      tracked.uses === 0 ? [] : [{ name, tracked, seen: tracked.seen, uses: tracked.uses }],
    );
    const keys = [...keyUses];
    const guids = [...guidUses];
    const tokens = [...tokenUses];
    const due = [...summaries.values()].filter((summary) => all || now - summary.from >= summaryEvery);
    denials.flush(all);
    const recounts = recounted.splice(0);
    firstUses.flush(all);
    const firsts = uncounted.splice(0);
    const refused = all || now - refusalsSince >= summaryEvery ? [...refusals.values()] : [];
    const records = due.length + refused.length + recounts.length + firsts.length;
    if (used.length + keys.length + guids.length + tokens.length + records === 0) return;
    for (const { tracked } of used) tracked.uses = 0;
    keyUses.clear();
    guidUses.clear();
    tokenUses.clear();
    for (const summary of due) summaries.delete(summary.application.id);
    if (refused.length > 0) {
      refusals.clear();
      refusalsSince = now;
    }
    try {
      const record = async (tx: Repositories): Promise<void> => {
        // One that was replaced meanwhile does not come back; its next use is a first one.
        for (const { name, tracked, seen, uses } of used)
          if (!(await tx.instances.addUses(tracked.id, { ...seen, uses }))) instances.delete(name);
        for (const [id, { first, last }] of keys) await tx.keys.touch(id, first, last);
        for (const { denial, count } of recounts)
          await tx.audit.append({ kind: 'key.denied', ...denial, details: { ...denial.details, count } });
        for (const { first, count } of firsts) await auditFirstUse(tx, first, count);
        for (const [id, at] of guids) await tx.accessGuids.touch(id, at);
        for (const [id, at] of tokens) await tx.tokens.touch(id, at);
        for (const summary of due)
          await tx.audit.append({
            kind: 'application.used',
            actor: {
              kind: 'application',
              id: summary.application.id,
              name: summary.application.name,
              requestId: 'summary',
              peer: null,
            },
            tenantId: summary.application.tenantId,
            subject: { kind: 'application', id: summary.application.id },
            details: {
              from: toRfc3339(summary.from),
              to: toRfc3339(now),
              operations: Object.fromEntries(summary.operations),
              failures: summary.failures,
            },
          });
        for (const { channel, reason, count, application, lastRequestId } of refused)
          await tx.audit.append({
            kind: 'authentication.failed',
            actor: serviceActor('summary'),
            tenantId: application?.tenantId ?? serviceTenantId,
            subject:
              application === null ? { kind: 'service', id: channel } : { kind: 'application', id: application.id },
            details: {
              channel,
              reason,
              count,
              ...(application === null ? {} : { applicationId: application.id, name: application.name, lastRequestId }),
            },
          });
      };
      // Audit events are on the disk before anything else happens; counters and times are not waited for.
      await store.write(record, { durable: all || records > 0 });
    } catch (error) {
      for (const { tracked, uses } of used) tracked.uses += uses;
      for (const [id, uses] of keys) keyUses.set(id, { first: uses.first, last: keyUses.get(id)?.last ?? uses.last });
      recounted.unshift(...recounts);
      uncounted.unshift(...firsts);
      for (const [id, at] of guids) if (!guidUses.has(id)) guidUses.set(id, at);
      for (const summary of due)
        if (!summaries.has(summary.application.id)) summaries.set(summary.application.id, summary);
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
      const tracked = instances.get(name);
      if (tracked === undefined) {
        const under = beginning.get(name);
        if (under !== undefined) return under;
        const started = begin(name, use, requestId, peer);
        beginning.set(name, started);
        return started;
      }
      const now = clock.now();
      tracked.seen = { libraryVersion: use.library, agentVersion: use.agent, pid: use.pid, lastUsedAt: now };
      tracked.uses += 1;
      guidUses.set(use.accessGuidId, now);
      return Promise.resolve();
    },
    used: (application, keyId, operation, succeeded) => {
      const now = clock.now();
      if (succeeded) keyUses.set(keyId, { first: keyUses.get(keyId)?.first ?? now, last: now });
      let summary = summaries.get(application.id);
      if (summary === undefined) {
        summary = { application, from: now, operations: new Map(), failures: 0 };
        summaries.set(application.id, summary);
      }
      summary.operations.set(operation, (summary.operations.get(operation) ?? 0) + 1);
      if (!succeeded) summary.failures += 1;
    },
    refused: (channel, reason, of) => {
      const application = of?.application ?? null;
      const lastRequestId = of?.requestId ?? null;
      const name = `${channel} ${reason} ${application?.id}`;
      const known = refusals.get(name);
      if (known === undefined) {
        refusals.set(name, { channel, reason, application, lastRequestId, count: 1 });
      } else {
        known.count += 1;
        known.lastRequestId = lastRequestId;
      }
    },
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
    tokenUsed: (id) => {
      tokenUses.set(id, clock.now());
    },
    flush: (all) => {
      flushing = flushing.then(() => writeDue(all));
      return flushing;
    },
  };
};
