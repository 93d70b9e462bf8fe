// What is counted of uses between two writes, and one such batch: taken out, written in one transaction, and put back when that fails.

import { toRfc3339 } from '../../base/clock.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Instance, TdeApplication } from '../../domain/tde.ts';
import type { Repositories } from '../../ports/store.ts';

/** Uses are counted since the last write: other nodes count those of the same instance that they see. */
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
  tx.audit.append({
    kind: 'application.used',
    actor: { kind: 'application', id: application.id, name: application.name, requestId: 'summary', peer: null },
    tenantId: application.tenantId,
    subject: { kind: 'application', id: application.id },
    details: { from: toRfc3339(from), to: toRfc3339(now), operations: Object.fromEntries(operations), failures },
  });

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
