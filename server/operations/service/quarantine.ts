// Quarantine: a database that is not the one of the checkpoint next to the root key, at start or
// later, is shown, and neither used nor changed, until an operator takes it as it is. An older
// database may have tokens that were revoked since: so the confirmation needs a code that only
// those know who have the service's host, next to the permission.

import { LimitRefused } from '../../base/limit-refusals.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type Clock, toRfc3339 } from '../../base/time.ts';
import type { AuditFinding, Unsound } from '../../domain/audit-finding.ts';
import type { Differences } from '../../domain/difference.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { Log } from '../../ports/log.ts';
import type { NodeState } from '../../ports/node-state.ts';
import type { Store } from '../../ports/store.ts';
import { expectedOf, sizeOf } from '../audit/compare-log.ts';
import type { DoubtedLog } from '../audit/quarantine-question.ts';
import type { AuditSealer } from '../audit/seal-audit-log.ts';
import type { QuarantineOperations, QuarantineState } from './service-operations.ts';

const mostGuesses = 10;
/** How often a new code takes the place of one that was guessed at too often. */
const renewEveryMs = 60_000;

export interface QuarantineGate extends DoubtedLog {
  /** The store, which takes no changes while the quarantine lasts. */
  readonly store: Store;
  readonly operations: QuarantineOperations;
  /** From now on nothing is changed: the database is no longer the one that was signed. */
  enter(finding: Unsound): void;
  closed():
    | { readonly reason: string; readonly code: string; readonly since: number; readonly differences: Differences }
    | undefined;
  /** Wrong codes were entered so often that there is a new one: it has to be printed. */
  onNewCode(print: () => void): void;
  /**
   * What is done once an operator has confirmed, before the answer. When it fails, the quarantine
   * stays, and the operator confirms again.
   */
  onConfirmed(begin: () => Promise<void>): void;
}

const describe = (place: string, finding: Unsound): string =>
  finding.state === 'incomplete'
    ? `${place} lacks changes that were confirmed: its audit log has ${finding.size} records and had ${finding.expected}; its write-ahead ` +
      `log (${place}-wal) is damaged or missing, or an older copy was restored; stop the service and restore the newer files, or confirm ` +
      'that this database is to be used'
    : finding.state === 'copied'
      ? `${place} was used on another host last, and the service there may still run: if this is a copy, or the other one may start again, stop this one; ` +
        'if the data directory was moved, or is a clone on purpose, confirm it: its audit log continues under a new name (docs/operations.md)'
      : finding.state === 'restored' && finding.at === null
        ? `how new ${place} must be is not known: the root key was restored, and no checkpoint of the audit log is beside it; if this is an older ` +
          'database, later changes, including revocations, are lost; confirm that it is to be used'
        : finding.state === 'restored'
          ? `${place} was restored from a backup of ${finding.at}: later changes, including revocations, are lost (dke quarantine show ` +
            'lists those that the sinks of the audit log have); confirm that it is to be used, and repeat the missing changes'
          : finding.state === 'older'
            ? `${place} is older than its last checkpoint: its audit log has ${finding.size} records and had ${finding.expected}; stop the ` +
              'service and restore the newer database, or confirm that this one was restored on purpose'
            : finding.state === 'lost-changes'
              ? `${place} lacks confirmed changes, as after a failover to a standby that lagged behind; restore the newest database, or confirm on each ` +
                'node that this one is to be used, and repeat the missing changes (the sinks of the audit log have their records)'
              : finding.state === 'rows-changed'
                ? `${place} has rows that differ from those that the service wrote last, or another schema: older rows were restored, or rows, triggers or other ` +
                  `objects were removed or added` +
                  `${finding.older.length === 0 ? '' : ` (older: ${finding.older.join(', ')})`}; stop the service and restore the right database, ` +
                  'or confirm that this one is to be used'
                : `${place} does not match the checkpoint next to the root key: its audit log was changed, or belongs to another ` +
                  'service; stop the service and restore the right database, or confirm that this one is to be used';

/** The code that an operator must enter: only those who can use the service's host know it. */
const createConfirmationCode = ({
  core,
  clock,
  log,
}: {
  readonly core: Pick<CryptoCore, 'random' | 'timingSafeEqual'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
}) => {
  let guesses = 0;
  const fresh = (): string => {
    const bytes = Buffer.alloc(8);
    core.random(bytes);
    return bytes.toString('hex');
  };
  let code = fresh();
  let madeAt = clock.monotonic();
  let print: () => void = () => undefined;
  const renew = (): void => {
    code = fresh();
    guesses = 0;
    madeAt = clock.monotonic();
  };
  return {
    current: (): string => code,
    renew,
    onNew: (work: () => void): void => {
      print = work;
    },
    /** Throws unless it is the code. */
    check: (given: string, actor: { readonly name: string }): void => {
      if (guesses >= mostGuesses) {
        const isNew = clock.monotonic() - madeAt >= renewEveryMs;
        if (isNew) {
          renew();
          print();
        }
        throw new LimitRefused('sign-ins', 'too many wrong codes were entered: the code is no longer valid', {
          hint: isNew
            ? 'the service has just printed a new code on its standard output'
            : 'try again in a minute: the service then prints a new code on its standard output',
          retryAfterSeconds: isNew ? 1 : renewEveryMs / 1000,
        });
      }
      const text = Buffer.alloc(code.length);
      text.write(given, 'latin1');
      if (given.length === code.length && core.timingSafeEqual(text, Buffer.from(code, 'latin1'))) return;
      guesses += 1;
      log.warn('a wrong quarantine confirmation code was entered', { guesses, actor: actor.name });
      throw new ServiceError('forbidden', 'the confirmation code is wrong', {
        hint: 'the service prints the code on its standard output when it starts',
      });
    },
  };
};

/** The store, which takes no changes unless it is open. */
const shutStore = (rawStore: Store, isOpen: () => boolean): Store => {
  const shut = (): Promise<never> =>
    Promise.reject(
      new ServiceError('unavailable', 'the service is in quarantine: nothing can be changed', {
        hint: 'run dke quarantine show for the differences; dke quarantine confirm accepts the database as it is',
      }),
    );
  return {
    ...rawStore,
    read: rawStore.read,
    write: (work, options) => (isOpen() ? rawStore.write(work, options) : shut()),
    probe: () => (isOpen() ? rawStore.probe() : shut()),
  };
};

const notQuarantined: QuarantineState = {
  ...{ quarantined: false, reason: null, finding: null, size: null, expected: null },
  ...{ since: null, differences: [], missing: null },
};

export const createQuarantine = (
  rawStore: Store,
  sealer: Pick<AuditSealer, 'accept' | 'suspend'>,
  {
    finding: foundAtStart,
    state: kept,
    place,
    core,
    clock,
    log,
    missing,
  }: {
    readonly finding: AuditFinding;
    /** What outlives this process. */
    readonly state: Pick<NodeState, 'quarantine' | 'recordQuarantine' | 'clear'>;
    readonly place: string;
    readonly core: Pick<CryptoCore, 'random' | 'timingSafeEqual'>;
    readonly clock: Pick<Clock, 'now' | 'monotonic'>;
    readonly log: Log;
    /** Records that the sinks have behind the last one of the database. */
    readonly missing: (size: number) => Promise<QuarantineState['missing']>;
  },
): QuarantineGate => {
  let finding = foundAtStart;
  let since = kept.quarantine?.since ?? clock.now();
  let open = finding.state === 'intact';
  let confirming = false;
  /**
   * The database is accepted. When a later step fails, the next confirmation does not accept it
   * again.
   */
  let accepted = false;
  let begin: () => Promise<void> = () => Promise.resolve();
  const code = createConfirmationCode({ core, clock, log });
  /**
   * Closed in any case: what cannot be recorded is found again from what is kept of the database.
   */
  const record = (found: Unsound): void => {
    try {
      kept.recordQuarantine({ finding: found, since });
    } catch (error) {
      log.error('the quarantine could not be recorded in the data directory', { error });
    }
  };
  if (finding.state !== 'intact') record(finding);

  const store = shutStore(rawStore, () => open);
  /** Read once: nothing is forwarded in the meantime. */
  let known: Promise<QuarantineState['missing']> | undefined;
  const readMissing = (found: Unsound): Promise<QuarantineState['missing']> => {
    if (found.state === 'changed') return Promise.resolve(null);
    const read = async () => missing(sizeOf(found) ?? (await rawStore.read.audit.size()));
    known ??= read().catch((error: unknown) => {
      log.error('what is missing could not be read from the sinks of the audit log', { error });
      known = undefined;
      return null;
    });
    return known;
  };
  const state = async (): Promise<QuarantineState> =>
    open || finding.state === 'intact'
      ? notQuarantined
      : {
          quarantined: true,
          reason: describe(place, finding),
          finding: finding.state,
          size: sizeOf(finding),
          expected: expectedOf(finding),
          since: toRfc3339(since),
          differences: finding.differences,
          missing: await readMissing(finding),
        };
  return {
    store,
    enter: (found) => {
      if (!open) return;
      finding = found;
      since = clock.now();
      record(found);
      known = undefined;
      code.renew();
      accepted = false;
      open = false;
      sealer.suspend();
    },
    closed: () => {
      return open || finding.state === 'intact'
        ? undefined
        : { reason: describe(place, finding), code: code.current(), since, differences: finding.differences };
    },
    doubtsLog: () => !open && !['intact', 'rows-changed'].includes(finding.state),
    onNewCode: code.onNew,
    onConfirmed: (work) => {
      begin = work;
    },
    operations: {
      get: () => state(),
      confirm: async (actor, given) => {
        if (open || finding.state === 'intact') throw new ServiceError('conflict', 'the service is not in quarantine');
        if (confirming)
          throw new ServiceError('conflict', 'the database is already being confirmed', {
            hint: 'run dke quarantine show to see when it is done',
          });
        code.check(given, actor);
        confirming = true;
        try {
          if (!accepted) await sealer.accept(finding, actor);
          accepted = true;
          // Behind the record of the confirmation.
          kept.clear();
          open = true;
          await begin();
        } catch (error) {
          open = false;
          throw error;
        } finally {
          confirming = false;
        }
        return state();
      },
    },
  };
};
