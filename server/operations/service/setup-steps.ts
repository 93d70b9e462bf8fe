// How far the setup of a service is. Everything is read from what is there, so that it can be left
// and continued by any administrator. What is not there is not done: of the rest, it is only
// recorded that a person has accepted the risk.

import { command } from '../../base/command-line.ts';
import { otherWork } from '../../base/next-turn.ts';
import { toRfc3339 } from '../../base/time.ts';
import { largestPageSize } from '../../domain/page.ts';
import { type ConfirmedStep, confirmableSteps, type SetupStep, type SetupStepName } from '../../domain/setup.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Window } from '../../ports/window.ts';
import type { LogForwarding } from '../audit/forward-logs.ts';
import { newestBackup } from '../copies/take-receipts.ts';
import { byId, mostAtOnce, pageOf } from '../shared/paging.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import { firstOpenedAt } from '../snapshots/last-opening.ts';
import type { SetupOperations } from './service-operations.ts';

const settingOf = (step: ConfirmedStep): string => `setup:${step}`;
type Word = NonNullable<SetupStep['confirmed']> & { readonly rootEpoch?: number };

const readWord = async (from: Repositories, step: ConfirmedStep): Promise<Word | null> => {
  const text = await from.settings.get(settingOf(step));
  return text === undefined ? null : (JSON.parse(text) as Word);
};

/**
 * Whether there was a copy of the root key, and every one is of an older epoch: it no longer opens
 * anything.
 */
export const hasOldRootCopy = async (from: Repositories, root: Pick<Ports['root'], 'current'>): Promise<boolean> => {
  const word = await readWord(from, 'root-key');
  const backup = await newestBackup(from, 'root-backup');
  // What was said before the epoch was kept with it is taken as said at the first one.
  const epochs = [...(word === null ? [] : [word.rootEpoch ?? 1]), ...(backup === null ? [] : [backup.rootEpoch ?? 0])];
  return epochs.length > 0 && Math.max(...epochs) < root.current.epoch;
};

/** The steps of which a person has accepted the risk, done or not. */
export const hasAcceptedRisks = async (from: Repositories): Promise<boolean> => {
  for (const step of confirmableSteps) if ((await readWord(from, step)) !== null) return true;
  return false;
};

interface FoundAdministrator {
  readonly name: string;
  /** Without them, who loses the second factor needs another administrator. */
  readonly hasCodes: boolean;
}

/** An administrator of the platform who is a person and signs in with more than a password. */
const findAdministrator = async (read: Repositories): Promise<FoundAdministrator | undefined> => {
  for (let after: string | undefined; ; ) {
    const users = await read.users.list(everyTenant, { after, limit: mostAtOnce });
    const able = users.filter(
      ({ state, integrity, grants }) =>
        state === 'active' &&
        integrity === 'ok' &&
        grants.some(({ role, tenantId }) => role === 'administrator' && tenantId === null),
    );
    const factors = able.length === 0 ? [] : await read.factors.listOf(able.map(({ id }) => id));
    const hasFactor = (id: string, isCode: boolean): boolean =>
      factors.some(
        ({ userId, kind, confirmedAt }) =>
          userId === id && confirmedAt !== null && (kind === 'recovery-code') === isCode,
      );
    const found = able.find(({ id, subject }) => subject !== null || hasFactor(id, false));
    // Who signs in elsewhere has no second factor here that could be lost.
    if (found !== undefined) return { name: found.name, hasCodes: found.subject !== null || hasFactor(found.id, true) };
    after = users.at(-1)?.id;
    if (users.length < mostAtOnce) return undefined;
    await otherWork();
  }
};

/** What is so of an administrator: whether there is one, and whether they could recover. */
const tellAdministrator = (found: FoundAdministrator | undefined) => ({
  administrator:
    found === undefined
      ? 'no user is an administrator with a second factor'
      : `${found.name} is an administrator with a second factor`,
  codes:
    found === undefined
      ? 'no administrator could use them yet'
      : found.hasCodes
        ? `${found.name} can sign in without the second factor if it is lost`
        : `${found.name} has none: who loses the second factor needs another administrator`,
});

const tellLasting = (count: number): string =>
  count === 0
    ? 'every administrator token expires'
    : `${count} administrator ${count === 1 ? 'token never expires' : 'tokens never expire'}`;

export const setupSteps = (
  { store, root, clock }: Pick<Ports, 'store' | 'root' | 'clock'>,
  forwarding: Pick<LogForwarding, 'state'>,
  schedule: string | null,
): SetupOperations => {
  const { read } = store;

  const look = async (): Promise<Awaited<ReturnType<SetupOperations['get']>>> => {
    const words = new Map<SetupStepName, Word | null>();
    for (const step of confirmableSteps) words.set(step, await readWord(read, step));
    const backup = await newestBackup(read, 'root-backup');
    const isBackedUp = backup?.rootEpoch === root.current.epoch;
    const isOld = await hasOldRootCopy(read, root);
    const toStep = (step: SetupStepName, done: boolean, finding: string): SetupStep => {
      const word = words.get(step) ?? null;
      const confirmed = word === null || (step === 'root-key' && isOld) ? null : { at: word.at, by: word.by };
      return { step, state: done ? 'done' : confirmed === null ? 'open' : 'confirmed', finding, confirmed };
    };

    // For a file with the unwrapped root key, the time since when it has opened is unknown.
    const isUnwrapped = root.ways.every(({ createdAt }) => createdAt === null);
    const administrator = await findAdministrator(read);
    const told = tellAdministrator(administrator);
    const lasting = await read.tokens.countAdministrators('lasting');
    const sinks = (await forwarding.state()).filter(({ log }) => log === 'audit');
    const failing = sinks.filter(({ failure }) => failure !== null).map(({ name }) => name);
    const keys = (await read.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);
    const list = (window: Window) => read.snapshots.list({}, window);
    const { items: snapshots } = await pageOf({ limit: largestPageSize }, list, byId);
    const finishedAt = await firstOpenedAt(read, snapshots);
    const newest = snapshots.find(({ state, verification }) => state === 'available' && verification?.valid === true);
    // What a sink took shows that it is reached.
    const reached = sinks.length > 0 && sinks.every(({ failure, forwarded }) => failure === null && forwarded > 0);
    return {
      finishedAt,
      steps: [
        toStep(
          'root-protection',
          !isUnwrapped,
          isUnwrapped
            ? 'unencrypted in its file: anyone who can read the file has the key'
            : `wrapped; opened by any of ${root.ways.map(({ name, type }) => `${name} (${type})`).join(', ')}`,
        ),
        toStep(
          'root-key',
          isBackedUp,
          isBackedUp
            ? `backed up ${toRfc3339(backup.at)}`
            : isOld
              ? 'replaced since its last backup, which is now useless: dke root backup --out FILE'
              : 'no backup: dke root backup --out FILE',
        ),
        toStep('administrator', administrator !== undefined, told.administrator),
        toStep('recovery-codes', administrator?.hasCodes === true, told.codes),
        toStep('first-token', lasting === 0, tellLasting(lasting)),
        toStep(
          'audit-sinks',
          reached,
          sinks.length === 0
            ? 'the audit log is local only'
            : failing.length === 0
              ? `the audit log is ${reached ? 'forwarded' : 'being forwarded'} to ${sinks.map(({ name }) => name).join(', ')}`
              : `the audit log does not reach ${failing.join(', ')}`,
        ),
        toStep(
          'recovery-key',
          keys.length > 0,
          keys.length === 0
            ? 'none is registered: no snapshots can be created'
            : `snapshots are sealed to ${keys.map(({ name }) => name).join(', ')}`,
        ),
        toStep(
          'snapshot-schedule',
          schedule !== null,
          schedule === null ? 'none: snapshots are created on demand only' : `snapshots are created at ${schedule}`,
        ),
        toStep(
          'snapshot',
          finishedAt !== null,
          finishedAt !== null
            ? 'created, and opened with a recovery key'
            : newest === undefined
              ? 'no snapshot was created yet'
              : `created but not opened yet: ${command`dke snapshot verify --recovery-key recovery.key ${newest.id}`}`,
        ),
      ],
    };
  };

  return {
    get: look,
    confirm: async (actor, step, confirmed) => {
      await store.write(async (tx) => {
        const before = await readWord(tx, step);
        const isOld = step === 'root-key' && (await hasOldRootCopy(tx, root));
        if ((before !== null) === confirmed && !(confirmed && isOld)) return;
        const word: Word = {
          at: clock.now(),
          by: actor.name,
          ...(step === 'root-key' ? { rootEpoch: root.current.epoch } : {}),
        };
        await tx.settings.set(settingOf(step), confirmed ? JSON.stringify(word) : null);
        await recordEvent(tx, 'setup.confirmed', actor, aboutService(), { step, confirmed });
      });
      return look();
    },
  };
};
