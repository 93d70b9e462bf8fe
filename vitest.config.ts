import { configDefaults, defineConfig } from 'vitest/config';
import { sqliteOnly } from './test/support/sqlite-only.ts';

const onPostgresql = process.env.DKE_TEST_STORE === 'postgresql';
if (onPostgresql)
  for (const [files, why] of Object.entries(sqliteOnly)) console.log(`left out on PostgreSQL: ${files}: ${why}`);

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    ...(onPostgresql
      ? {
          exclude: [...configDefaults.exclude, ...Object.keys(sqliteOnly)],
          globalSetup: 'test/support/test-store-server.ts',
        }
      : {}),
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A busy machine is late: what is waited for has its time.
    expect: { poll: { timeout: 60_000, interval: 50 } },
    reporters: ['default'],
  },
});
