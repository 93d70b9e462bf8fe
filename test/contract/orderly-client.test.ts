// Connections to PostgreSQL, asked for several things at once.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { OrderlyClient } from '../../server/store/postgres/orderly-client.ts';
import { freshDatabase, onPostgresql } from '../support/test-store.ts';

if (!onPostgresql) console.log('left out on SQLite: connections to PostgreSQL');

describe.runIf(onPostgresql)('a connection', () => {
  test('is asked one thing at a time, in order, and goes on after an error; pg has nothing to warn of', async () => {
    const warnings: string[] = [];
    const heed = ({ message }: Error): void => void warnings.push(message);
    process.on('warning', heed);
    const folder = mkdtempSync(join(tmpdir(), 'dke-orderly-'));
    const client = new OrderlyClient({ ...(await freshDatabase(folder)) });
    await client.connect();
    try {
      const ended: number[] = [];
      const ask = async (at: number, text: string): Promise<unknown> => {
        try {
          return (await client.query(text)).rows[0]?.answer;
        } finally {
          ended.push(at);
        }
      };
      const answers = await Promise.allSettled([
        ask(0, 'select 0 as answer, pg_sleep(0.1)'),
        ask(1, 'select 1 as answer'),
        ask(2, 'select nothing'),
        ask(3, 'select 3 as answer'),
        ask(4, 'select 4 as answer'),
      ]);
      expect(ended).toEqual([0, 1, 2, 3, 4]);
      expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.status))).toEqual([
        0,
        1,
        'rejected',
        3,
        4,
      ]);
      // Warnings are told a turn later.
      await new Promise((resolve) => setImmediate(resolve));
      expect(warnings).toEqual([]);
    } finally {
      process.off('warning', heed);
      await client.end();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
