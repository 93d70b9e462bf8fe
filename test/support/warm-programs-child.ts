// Fills the compile cache of Node for the bundled programs. Node stores the compiled functions of a
// module once, when the first process that used it ends: a process that did little leaves little,
// and all later ones compile the rest again. So these are the first: a service, an agent and
// commands that do what most tests ask of them. Started by programs.ts in a process of its own.

import { runCommand } from './command.ts';
import { createGroup, registerApplication } from './console-api.ts';
import { startSite } from './site.ts';
import { createXksEndpoint } from './xks-call.ts';

const reads = [
  'tenants',
  'vaults',
  'keys',
  'endpoints',
  'tde/groups',
  'tde/applications',
  'audit',
  'notifications',
  'snapshots',
  'tokens',
];
const iv = '00'.repeat(16);

const site = await startSite();
try {
  const endpoint = await createXksEndpoint(site, 'warm');
  const { body } = await endpoint.encrypt(Buffer.alloc(32));
  await endpoint.decrypt(body);
  await endpoint.health();
  const application = await registerApplication(site.api, 'warm', await createGroup(site.api, 'warm'));
  const database = site.database(site.config('warm', application));
  await database.call('open', { pin: '' });
  const { handle = 0 } = await database.call('generate', { label: 'warm' });
  await database.call('find', { label: 'warm' });
  const { data = '' } = await database.call('encrypt', { handle, iv, data: iv });
  await database.call('decrypt', { handle, iv, data });
  await database.call('destroy', { handle });
  await database.call('finalize', {});
  for (const name of reads) await site.api.send('GET', `/api/${name}`);
  // The service first: commands share modules with it, and use less of them.
  await site.stopServer();
  await site.startServer();
  const server = ['--server', site.server.url, '--ca-file', site.server.caFile];
  const environment = { DKE_TOKEN_FILE: '-' };
  await runCommand([...server, 'vault', 'create', 'more'], { input: site.token, environment });
  await runCommand([...server, 'vault', 'list'], { input: site.token, environment });
  await runCommand(['--version']);
} finally {
  await site.end();
}
