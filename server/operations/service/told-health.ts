// What a node finds wrong with itself, for the node that notifies: one setting for each node, written when it changes. It decides nothing, so that it has
// no authentication code. A node that cannot write it is one whose database is away: then it is offline for the others, too.

import { canonicalJson } from '../../base/bytes.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Health } from './interface.ts';

/** Why each failing check fails, by its name. */
export type Failing = Readonly<Record<string, string>>;

const settingOf = (nodeId: string): string => `node-health ${nodeId}`;
const longestDetail = 200;

export const failingOf = ({ checks }: Pick<Health, 'checks'>): Failing =>
  Object.fromEntries(
    checks.filter(({ healthy }) => !healthy).map(({ name, detail }) => [name, detail.slice(0, longestDetail)]),
  );

export const readToldHealth = async (
  { settings }: Pick<Repositories, 'settings'>,
  nodeId: string,
): Promise<Failing> => {
  const text = await settings.get(settingOf(nodeId));
  return text === undefined ? {} : (JSON.parse(text) as Failing);
};

/** To be called with each result; writes only what has changed. */
export const createToldHealth = ({ store }: Pick<Ports, 'store'>, nodeId: string) => {
  let told: string | undefined;
  return async (failing: Failing): Promise<void> => {
    if (store.link === undefined) return;
    told ??= canonicalJson(await readToldHealth(store.read, nodeId));
    const text = canonicalJson(failing);
    if (text === told) return;
    const value = Object.keys(failing).length === 0 ? null : text;
    await store.write((tx) => tx.settings.set(settingOf(nodeId), value), { durable: false, background: true });
    told = text;
  };
};
