// How far each sink is: a setting of the store for each. A number counts only in the log that it is
// of.

import type { Forwarded, ForwardedLog } from '../../ports/log-sink.ts';
import type { Repositories } from '../../ports/store.ts';
import { auditOrigin } from './audit-origin.ts';

export interface Cursor {
  /** Name of the log that the numbers are of. */
  readonly log: string;
  /** Number of the last record, and size of the last checkpoint, that the sink has. */
  readonly record: number;
  readonly checkpoint: number;
}

export const settingOf = ({ sink: { name }, log }: Forwarded): string =>
  log === 'audit' ? `audit-sink:${name}` : `request-sink:${name}`;
export const lostSettingOf = ({ sink: { name } }: Forwarded): string => `request-sink-lost:${name}`;
/**
 * The last fork that was found at the sink: the number of the first record that is known to differ,
 * and when.
 */
export const forkSettingOf = ({ sink: { name }, log }: Forwarded): string => `sink-fork:${log}:${name}`;
export const parseFork = (text: string | undefined): { readonly record: number; readonly at: number } | undefined => {
  const [, record, at] = /^(\d{1,15}) (\d{1,15})$/.exec(text ?? '') ?? [];
  return at === undefined ? undefined : { record: Number(record), at: Number(at) };
};
export const parseLost = (text: string | undefined): { readonly lost: number; readonly lostAt: number | null } => {
  const [, lost, at] = /^(\d{1,15}) (\d{1,15})$/.exec(text ?? '') ?? [];
  return { lost: Number(lost ?? 0), lostAt: at === undefined ? null : Number(at) };
};
/** Counts what the sink never gets. */
export const addLost = async (tx: Repositories, target: Forwarded, count: number, now: number): Promise<void> => {
  const { lost } = parseLost(await tx.settings.get(lostSettingOf(target)));
  await tx.settings.set(lostSettingOf(target), `${lost + count} ${now}`);
};
export const takes = ({ endpoints }: Forwarded, endpointId: string | null): boolean =>
  endpoints.length === 0 || (endpointId !== null && endpoints.includes(endpointId));

/** The name of a log: both change when the database is replaced by an older one. */
export const logName = async (from: Repositories, log: ForwardedLog): Promise<string> => {
  const origin = await auditOrigin(from);
  return log === 'audit' ? origin : origin.replace('/audit/', '/requests/');
};

/** Cursors of before logs were named in them are of the log that there is. */
export const parseCursor = (text: string | undefined, log: string): Cursor => {
  const [, record = '0', checkpoint = '0', named = log] = /^(\d{1,15}) (\d{1,15})(?: (\S+))?$/.exec(text ?? '') ?? [];
  return { log: named, record: Number(record), checkpoint: Number(checkpoint) };
};
