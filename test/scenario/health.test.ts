// What the service says of its own health to those who ask one thing only: a cloud key service asks GetHealthStatus and no one
// else asks anything.
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
  renameSync(`${rootKey}.away`, rootKey);
  await expect.poll(answer).toMatchObject({ status: 200 });
});
