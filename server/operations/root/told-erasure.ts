// How far the erasure run is, as the node with its duty tells the others: a text in the database,
// which decides nothing and has no authentication code. It counts while the run of the node that
// has told it is under way and has the duty; what no node has written counts as not told.

import { canonicalJson } from '../../base/bytes.ts';
import { runOf } from '../../domain/node.ts';
import type { ErasureBlockers, ErasureState } from '../../ports/erasure.ts';
import type { Fleet } from '../../ports/fleet.ts';
import { type RecordClass, recordClasses } from '../../ports/key-record.ts';
import type { Store } from '../../ports/store.ts';

const setting = 'erasure-state';

export interface ToldErasure extends ErasureState {
  /** The run of the node that has told it (domain/node.ts). */
  readonly run: string;
}

type Members = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNumber = (value: unknown): value is number => Number.isSafeInteger(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const areTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);
const isOneOf = <T extends string>(all: readonly T[], value: unknown): value is T =>
  (all as readonly unknown[]).includes(value);

const isRecord = (value: unknown): value is ErasureBlockers['records'][number] =>
  isObject(value) &&
  isOneOf(['key', 'object', 'credential', 'other'], value.kind) &&
  isText(value.id) &&
  (value.name === null || isText(value.name)) &&
  isNumber(value.version) &&
  isOneOf<RecordClass>(recordClasses, value.copy);

const isBlockers = (value: unknown): value is ErasureBlockers =>
  isObject(value) &&
  isNumber(value.since) &&
  Array.isArray(value.records) &&
  value.records.every(isRecord) &&
  areTexts(value.nodes) &&
  areTexts(value.standbys) &&
  areTexts(value.snapshots);

/** Undefined: no node of this version has written this. */
export const parseToldErasure = (text: string): ToldErasure | undefined => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { state, blockers, failure, waitsFor, run } = value;
  if (!isText(run) || !isOneOf(['idle', 'waiting', 'running', 'blocked', 'failed'], state)) return undefined;
  if (state === 'blocked' ? !isBlockers(blockers) : blockers !== null) return undefined;
  if (state === 'failed' ? !isText(failure) : failure !== null) return undefined;
  if (state === 'waiting' ? !isOneOf(['destructions', 'copies', 'node'], waitsFor) : waitsFor !== null)
    return undefined;
  return { state, blockers, failure, waitsFor, run } as ToldErasure;
};

interface ToldPorts {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly fleet: Pick<Fleet, 'perform' | 'run' | 'nodes'>;
}

/**
 * Written as a part of the duty: a node that has lost it writes nothing. Answers the text; the
 * same one is not written again.
 */
export const writeToldErasure = async (
  { store, fleet }: ToldPorts,
  state: () => ErasureState,
  before: string | undefined,
): Promise<string | undefined> =>
  fleet.perform('erasure', async () => {
    const text = canonicalJson({ ...state(), run: fleet.run() });
    if (text !== before)
      await store.write((tx) => tx.settings.set(setting, text), { durable: false, background: true });
    return text;
  });

/** Undefined: no node has told it that has the duty and runs. */
export const readToldErasure = async ({ store, fleet }: ToldPorts): Promise<ErasureState | undefined> => {
  const text = await store.read.settings.get(setting);
  const told = text === undefined ? undefined : parseToldErasure(text);
  if (told === undefined) return undefined;
  const { run, ...state } = told;
  const isBelieved = (await fleet.nodes()).some(
    (node) =>
      runOf(node) === run && node.duties.includes('erasure') && (node.state === 'active' || node.state === 'draining'),
  );
  return isBelieved ? state : undefined;
};
