// The service's answers about its own health, for each kind of caller: a cloud key service calls
// GetHealthStatus and no one else asks anything. A supervisor asks whether a restart would help, a
// container's health check asks with the service's own command.
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { connectRaw } from '../support/raw-tls.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site?.end());

test('GetHealthStatus turns bad with the root key, and good again, though nothing asks /health', async () => {
  const endpoint = await createXksEndpoint(site, 'lonely');
  const answer = async () => {
    const { status, body } = await endpoint.health();
    return { status, errorName: body.errorName };
  };
  expect(await answer()).toMatchObject({ status: 200 });
  const rootKey = join(site.server.dataDirectory, 'root.key');
  renameSync(rootKey, `${rootKey}.away`);
  await expect.poll(answer).toEqual({ status: 503, errorName: 'DependencyTimeoutException' });
  expect(await site.api.send('GET', '/health')).toMatchObject({ status: 503, text: '{"status":"unhealthy"}' });
  // A restart would not help.
  expect(await site.api.send('GET', '/health/live')).toMatchObject({ status: 200, text: '{"status":"live"}' });
  renameSync(`${rootKey}.away`, rootKey);
  await expect.poll(answer).toMatchObject({ status: 200 });
});

test('a balancer that speaks HTTP/1.0, without a Host header, gets 200', async () => {
  const socket = await connectRaw(site.server, undefined);
  const chunks: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => chunks.push(bytes));
  const end = once(socket, 'close');
  socket.write('GET /health HTTP/1.0\r\n\r\n');
  await end;
  expect(Buffer.concat(chunks).toString('latin1')).toMatch(/^HTTP\/1\.[01] 200 .*\{"status":"healthy"\}$/s);
});

test('dke server health: healthy, unhealthy, and a service that does not run', async () => {
  const ask = () => runCommand(['server', 'health', '--config', join(site.folder, 'dke.toml')]);
  await expect.poll(ask).toMatchObject({ code: 0, stdout: expect.stringMatching(/^status\s+healthy$/m), stderr: '' });
  const rootKey = join(site.server.dataDirectory, 'root.key');
  renameSync(rootKey, `${rootKey}.away`);
  await expect
    .poll(ask)
    .toMatchObject({ code: 8, stdout: '', stderr: expect.stringMatching(/^dke: the service is unhealthy$/m) });
  renameSync(`${rootKey}.away`, rootKey);
  await site.stopServer();
  const { code, stderr } = await ask();
  expect({ code, stderr }).toEqual({ code: 8, stderr: expect.stringContaining('ECONNREFUSED') });
});
