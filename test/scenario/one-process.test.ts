// Everything that people, clouds and databases call is one process: there is no proxy that could be
// stopped or restarted alone.
import { expect, test } from 'vitest';
import { startSite } from '../support/site.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

test('one process serves the console, its API, the key store proxy and databases, and its end ends all of them', async () => {
  const site = await startSite();
  try {
    const endpoint = await createXksEndpoint(site, 'proxy');
    const guid = '00000000-0000-4000-8000-000000000000';
    const callers: Readonly<Record<string, () => Promise<{ readonly status: number }>>> = {
      api: () => site.api.send('GET', '/api/status'),
      health: () => site.api.send('GET', '/health'),
      proxy: () => endpoint.health(),
      // The path names a database that is not registered: the front of databases refuses it.
      databases: () => site.api.send('POST', `/tde/v1/${guid}/db1/objects/find`),
    };
    const statuses = async () =>
      Object.fromEntries(
        await Promise.all(Object.entries(callers).map(async ([name, call]) => [name, (await call()).status])),
      );
    expect(await statuses()).toEqual({ api: 200, health: 200, proxy: 200, databases: 401 });
    await site.stopServer('SIGKILL');
    for (const call of Object.values(callers)) await expect(call()).rejects.toThrow();
    await site.startServer();
    expect(await statuses()).toEqual({ api: 200, health: 200, proxy: 200, databases: 401 });
  } finally {
    await site.end();
  }
});
