// Asks a service by the configuration of a file, and prints what its log would say.
import { loadConfig } from '../../provider/client/config.ts';
import { ServiceCallError } from '../../provider/client/service.ts';
import { openHttpService } from '../../provider/client/service-http.ts';

const door = openHttpService(await loadConfig(process.argv[2] ?? ''));
try {
  await door.call({ route: 'info', handle: null, head: {}, raw: null }, { requestId: 'r', instance: 'x' });
} catch (error) {
  if (!(error instanceof ServiceCallError)) throw error;
  process.stdout.write(JSON.stringify({ told: error.told, message: error.message }));
}
// The look-up that is still under way would keep it for as long as the resolver tries.
process.exit(0);
