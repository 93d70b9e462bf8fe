// Reads of a transaction that are asked again. The writer's lock keeps every other writer away, so
// that a read is answered as before until this transaction has written to one of its tables.
// Operations read the same rows for their rules, their change and their answer: each of these would
// be a round trip while all nodes wait for the lock. Rows with bytes are read each time: who gets
// them may wipe them.

import type pg from 'pg';
import { tables } from '../../schema/schema.ts';

const known: ReadonlySet<string> = new Set(Object.keys(tables));
const mostRows = 200;
const mostReads = 500;

const namesIn = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, name = '']) => name);
/** The tables of a read; undefined: it may have other sources, or another answer each time. */
const sourcesOf = (text: string): readonly string[] | undefined => {
  if (!/^select /.test(text) || /\b(nextval|now|random|clock_timestamp|pg_\w+|for update)\b/.test(text))
    return undefined;
  const names = namesIn(text, /\b(?:from|join) "?(\w+)"?/g);
  return names.length > 0 && names.every((name) => known.has(name)) ? names : undefined;
};
const isPlain = (value: unknown): boolean => value === null || typeof value !== 'object';

export const createReadOnce = () => {
  const answers = new Map<string, { readonly sources: readonly string[]; readonly answer: pg.QueryResult }>();
  const keyOf = (text: string, values: readonly unknown[]): string => JSON.stringify([text, ...values]);
  return {
    /** What the same read was answered. */
    find: (text: string, values: readonly unknown[]): pg.QueryResult | undefined => {
      if (answers.size === 0 || !text.startsWith('select ') || !values.every(isPlain)) return undefined;
      const found = answers.get(keyOf(text, values))?.answer;
      return found && { ...found, rows: found.rows.map((row: object) => ({ ...row })) };
    },
    /** After each statement. */
    saw: (text: string, values: readonly unknown[], answer: pg.QueryResult): void => {
      if (/^(savepoint|release savepoint) /.test(text)) return;
      const sources = sourcesOf(text);
      if (sources !== undefined) {
        const isKept = answers.size < mostReads && answer.rows.length <= mostRows && values.every(isPlain);
        if (!isKept || !answer.rows.every((row: object) => Object.values(row).every(isPlain))) return;
        const rows = answer.rows.map((row: object) => ({ ...row }));
        answers.set(keyOf(text, values), { sources, answer: { ...answer, rows } });
        return;
      }
      if (text.startsWith('select ')) return;
      const written = namesIn(text, /\b(?:insert into|update|delete from) "?(\w+)"?/g);
      if (written.length === 0) answers.clear();
      for (const [key, each] of answers) if (each.sources.some((name) => written.includes(name))) answers.delete(key);
    },
    forget: (): void => answers.clear(),
  };
};
