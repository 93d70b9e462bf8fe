// Asks a service by the configuration of a file, and prints what its log would say.

import { ServiceCallError } from '../../provider/agent/service/service-door.ts';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig } from '../../provider/agent/settings/config.ts';

const door = openHttpService(await loadConfig(process.argv[2] ?? ''));
try {
  await door.call({ route: 'info', handle: null, head: {}, raw: null }, { requestId: 'r', instance: 'x' });
} catch (error) {
  if (!(error instanceof ServiceCallError)) throw error;
  process.stdout.write(JSON.stringify({ told: error.told, message: error.message }));
}
// The look-up that is still under way would keep it for as long as the resolver tries.
process.exit(0);
