// Started once for a test run with DKE_TEST_STORE=postgresql: the PostgreSQL on which every service
// of the run has its database. Its files are in memory where there is room (a service refuses a
// server with fsync off, and on tmpfs fsync costs nothing): what such a run says about power
// failures is nothing.

import { openPostgresStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import { startPostgres } from './postgresql.ts';
import { socketVariable, templateDatabase } from './test-store.ts';

export default async (): Promise<() => Promise<void>> => {
  const server = await startPostgres({ connections: 200 });
  // A run that is broken off ends without its tear-down.
  const drop = (): void => server.drop();
  process.once('exit', drop);
  const place = server.createDatabase(templateDatabase);
  const store = await openPostgresStore({
    postgres: { ...place, password: undefined, ca: undefined, readers: 1 },
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
  await store.close();
  process.env[socketVariable] = place.host;
  return async () => {
    process.off('exit', drop);
    await server.remove();
  };
};
