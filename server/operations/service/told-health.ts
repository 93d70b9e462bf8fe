// What a node finds wrong with itself, for the node that notifies: one setting for each node,
// written when it changes. It decides nothing, so that it has no authentication code. A node that
// cannot write it is one whose database is away: then it is offline for the others, too.

import { canonicalJson } from '../../base/bytes.ts';
import type { Clock } from '../../base/time.ts';
import { nodeSettings } from '../../domain/node.ts';
import type { LogState } from '../../ports/log.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Health } from './service-operations.ts';
import { createTelling } from './told-setting.ts';

/** Why each failing check fails, by its name. */
export type Failing = Readonly<Record<string, string>>;

const longestDetail = 200;
const checkName = /^[a-z-]{1,40}$/;
const mostChecks = 16;

export const failingOf = ({ checks }: Pick<Health, 'checks'>): Failing =>
  Object.fromEntries(
    checks.filter(({ healthy }) => !healthy).map(({ name, detail }) => [name, detail.slice(0, longestDetail)]),
  );

/**
 * Who writes to the database chooses it: what no node has told is a failing check, too, and hides
 * no other one.
 */
const parseFailing = (text: string): Failing => {
  try {
    const checks = Object.entries(JSON.parse(text) as object);
    if (
      checks.length <= mostChecks &&
      checks.every(([name, detail]) => checkName.test(name) && typeof detail === 'string')
    )
      return Object.fromEntries(checks.map(([name, detail]) => [name, detail.slice(0, longestDetail)]));
  } catch {
    // Answered below.
  }
  return { health: 'what this node has told cannot be read' };
};

export const readToldHealth = async (
  { settings }: Pick<Repositories, 'settings'>,
  nodeId: string,
): Promise<Failing> => {
  const text = await settings.get(nodeSettings.health(nodeId));
  return text === undefined ? {} : parseFailing(text);
};

/**
 * Checks the health, and tells the others what has changed. In quarantine nothing is written: what
 * is wrong then is told when the database is back.
 */
export const tellHealth = (
  { store, clock }: Pick<Ports, 'store'> & { readonly clock: Pick<Clock, 'monotonic'> },
  nodeId: string,
  { health, logState }: { readonly health: () => Promise<Health>; readonly logState: () => LogState },
): (() => Promise<void>) => {
  const own = createTelling({ store, clock }, nodeId, 'health');
  const tell = (failing: Failing): Promise<void> => {
    const text = canonicalJson(failing);
    return own.tell(text, () => Promise.resolve(Object.keys(failing).length === 0 ? null : text));
  };
  return async () => {
    const failing = failingOf(await health());
    const { failure } = logState();
    const log = failure === null ? {} : { log: failure.message.slice(0, longestDetail) };
    if (store.link !== undefined) await tell({ ...failing, ...log }).catch(() => undefined);
  };
};
