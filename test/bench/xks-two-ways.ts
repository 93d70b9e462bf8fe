// One service, two listeners: the XKS front alone, and behind Hono's router, which hands it Node's
// own request and response, as the server does it. A separate process, so that its CPU time can be
// measured: prints the two ports and a credential as JSON.

import { core } from '../../addon/core.ts';
import { createListener } from '../../server/fronts/listener/listener.ts';
import { administrator, openTestService } from '../support/open-service.ts';

const opened = await openTestService({ toml: '[memory]\nallow_unlocked = true\n' });
const { service, operations } = opened;
const vault = await operations.vaults.create(administrator, { name: 'bench' });
const key = await operations.keys.create(administrator, { name: 'bench', vaultId: vault.id });
const endpoint = await operations.endpoints.create(administrator, { name: 'bench', vaultId: vault.id, keyId: key.id });
const { credential, secretAccessKey } = await operations.endpoints.addCredential(administrator, endpoint.id);

const listen = (handle: Parameters<typeof createListener>[0]['handle']): Promise<number> =>
  createListener({
    tls: service.readTls(),
    maxConnections: 1000,
    trustedProxies: [],
    holdNew: core.holdNewConnections,
    handle,
  }).listen('127.0.0.1', 0);

const before = await listen((incoming, outgoing) => service.xks.handle(incoming, outgoing));
const through = await listen(service.handle);
process.stdout.write(
  `${JSON.stringify({
    ports: [before, through],
    path: `/xks/${endpoint.prefix}/kms/xks/v1/keys/${key.id}/encrypt`,
    accessKeyId: credential.accessKeyId,
    secretAccessKey: secretAccessKey.toString('latin1'),
  })}\n`,
);
process.once('SIGTERM', () => {
  void opened.remove().then(() => process.exit());
});
