// How far the set-up of a service is. Everything is read from what is there, so that it can be left and taken up by anybody; only what nobody
// can see from here (a copy that lies elsewhere) is kept as somebody's word.

import { serviceTenantId } from '../base/ids.ts';
import { largestPageSize } from '../domain/page.ts';
import { type SettledStep, type SetupStep, type SetupStepName, settledSteps } from '../domain/setup.ts';
import { everyTenant } from '../domain/tenant.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories } from '../ports/store.ts';
import type { AuditForwarding } from './forward-audit.ts';
import type { SetupOperations } from './index.ts';
import { firstOpenedAt } from './snapshots/opened.ts';

const settingOf = (step: SettledStep): string => `setup:${step}`;
type Word = NonNullable<SetupStep['settled']>;

const readWord = async (from: Repositories, step: SettledStep): Promise<Word | null> => {
  const text = await from.settings.get(settingOf(step));
  return text === undefined ? null : (JSON.parse(text) as Word);
};

/** An administrator of the platform who is a person and signs in with more than a password. */
const findAdministrator = async (read: Repositories): Promise<string | undefined> => {
  for (let after: string | undefined; ; ) {
    const users = await read.users.list(everyTenant, { after, limit: largestPageSize });
    const able = users.filter(
      ({ state, integrity, grants }) =>
        state === 'active' &&
        integrity === 'ok' &&
        grants.some(({ role, tenantId }) => role === 'administrator' && tenantId === null),
    );
    const factors = able.length === 0 ? [] : await read.factors.listOf(able.map(({ id }) => id));
    const found = able.find(
      ({ id, subject }) =>
        subject !== null ||
        factors.some(
          ({ userId, kind, confirmedAt }) => userId === id && confirmedAt !== null && kind !== 'recovery-code',
        ),
    );
    if (found !== undefined) return found.name;
    after = users.at(-1)?.id;
    if (users.length < largestPageSize) return undefined;
  }
};

export const setUpSteps = (
  { store, root, clock }: Pick<Ports, 'store' | 'root' | 'clock'>,
  forwarding: Pick<AuditForwarding, 'state'>,
): SetupOperations => {
  const { read } = store;

  const look = async (): Promise<Awaited<ReturnType<SetupOperations['get']>>> => {
    const words = new Map<SetupStepName, Word | null>();
    for (const step of settledSteps) words.set(step, await readWord(read, step));
    const toStep = (step: SetupStepName, done: boolean, finding: string): SetupStep => {
      const settled = words.get(step) ?? null;
      return { step, state: done ? 'done' : settled === null ? 'open' : 'settled', finding, settled };
    };

    const administrator = await findAdministrator(read);
    const sinks = await forwarding.state();
    const failing = sinks.filter(({ failure }) => failure !== null).map(({ name }) => name);
    const keys = (await read.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);
    const snapshots = await read.snapshots.list({}, { limit: largestPageSize });
    const finishedAt = await firstOpenedAt(read, snapshots);
    const newest = snapshots.find(({ state, verification }) => state === 'held' && verification?.sound === true);
    // What a sink took shows that it is reached.
    const reached = sinks.length > 0 && sinks.every(({ failure, forwarded }) => failure === null && forwarded > 0);
    return {
      finishedAt,
      steps: [
        toStep(
          'root-key',
          false,
          // Of a file that holds the root key itself nobody knows since when it opens it.
          root.ways.every(({ createdAt }) => createdAt === null)
            ? 'in clear in its file: whoever reads the file has it'
            : `wrapped; opened by any of ${root.ways.map(({ name, type }) => `${name} (${type})`).join(', ')}`,
        ),
        toStep(
          'administrator',
          administrator !== undefined,
          administrator === undefined
            ? 'no person is an administrator with a second factor'
            : `${administrator} is one, with a second factor`,
        ),
        toStep(
          'audit-sinks',
          reached,
          sinks.length === 0
            ? 'the log is kept only here'
            : failing.length === 0
              ? `the log ${reached ? 'goes' : 'is on its way'} to ${sinks.map(({ name }) => name).join(', ')}`
              : `the log does not reach ${failing.join(', ')}`,
        ),
        toStep(
          'recovery-key',
          keys.length > 0,
          keys.length === 0
            ? 'none is registered: no snapshot can be made'
            : `snapshots are sealed to ${keys.map(({ name }) => name).join(', ')}`,
        ),
        toStep(
          'snapshot',
          finishedAt !== null,
          finishedAt !== null
            ? 'created, and opened with a recovery key'
            : newest === undefined
              ? 'none was created yet'
              : `created, and not opened yet: dke snapshot verify ${newest.id} --recovery-key recovery.key`,
        ),
      ],
    };
  };

  return {
    get: look,
    settle: async (actor, step, settled) => {
      await store.write(async (tx) => {
        const before = await readWord(tx, step);
        if ((before !== null) === settled) return;
        const word: Word = { at: clock.now(), by: actor.name };
        await tx.settings.set(settingOf(step), settled ? JSON.stringify(word) : null);
        await tx.audit.append({
          kind: 'setup.settled',
          actor,
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'service' },
          details: { step, settled },
        });
      });
      return look();
    },
  };
};
