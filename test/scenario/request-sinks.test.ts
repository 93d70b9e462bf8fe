// Forwarding of the request log of a real server, configured in dke.toml: to a file of one
// endpoint's requests, and to an HTTPS collector, which is unreachable at first. A request id is
// found in the answer, in the request log, in the file and at the collector.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { EndpointRequest } from '../../server/contract/api/requests-routes.ts';
import { makeAuthority } from '../support/authority.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { freePort } from '../support/daemon.ts';
import { until } from '../support/host.ts';
import { startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

interface Event {
  readonly class_uid: number;
  readonly metadata: { readonly correlation_uid: string };
}

test('requests reach a file and a collector that was away, those of one endpoint and those of all', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-request-sinks-'));
  const authority = makeAuthority(folder, 'collectors');
  const made = authority.issue({ commonName: 'collector', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
  const events: Event[] = [];
  const files = { cert: readFileSync(made.certificate), key: readFileSync(made.key) };
  const collector = createServer(files, async (incoming, outgoing) => {
    let text = '';
    for await (const part of incoming) text += String(part);
    events.push(...(JSON.parse(text) as Event[]));
    outgoing.writeHead(200).end('{}');
  });
  const collectorPort = await freePort();
  let server = await startServerProcess({ folder });
  const { adminToken: token, port } = server;
  try {
    const api = openConsoleApi(server, token);
    const [orders, payroll] = [
      await createXksEndpoint({ server, api }, 'orders'),
      await createXksEndpoint({ server, api }, 'payroll'),
    ];
    await server.stop();
    const sink = (name: string, more: readonly string[]): string =>
      ['[[audit.sinks]]', `name = "${name}"`, 'log = "requests"', ...more, ''].join('\n');
    const file = join(folder, 'orders.ndjson');
    const toml =
      sink('orders', ['type = "file"', `path = "${file}"`, `endpoints = ["${orders.endpoint.id}"]`]) +
      sink('lake', [
        'type = "https"',
        `url = "https://127.0.0.1:${collectorPort}/in"`,
        `ca = "${authority.certificate}"`,
      ]);
    server = await startServerProcess({ folder, port, toml });
    for (const endpoint of [orders, payroll, orders])
      expect((await endpoint.at(server).encrypt(Buffer.alloc(32, 1))).status).toBe(200);

    const logged = await until('the request log', async () => {
      const { items } = await api.call<{ items: readonly EndpointRequest[] }>('GET', '/api/requests');
      return items.length >= 3 ? items : undefined;
    });
    const idsOf = (records: readonly EndpointRequest[]): readonly string[] =>
      records.map(({ requestId }) => requestId).toSorted();
    const lines = await until('the file', async () => {
      const found = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(1) : [];
      return found.length >= 2 ? found.map((line) => JSON.parse(line) as EndpointRequest) : undefined;
    });
    expect(idsOf(lines)).toEqual(idsOf(logged.filter(({ endpointId }) => endpointId === orders.endpoint.id)));
    // The unreachable collector delayed nothing, and it gets everything later.
    expect(events).toEqual([]);
    collector.listen(collectorPort, '127.0.0.1');
    // Records that may not have been read are sent again.
    const delivered = () => [...new Set(events.map(({ metadata }) => metadata.correlation_uid))].toSorted();
    await until('the collector', async () => (delivered().length >= 3 ? true : undefined));
    expect(new Set(events.map(({ class_uid }) => class_uid))).toEqual(new Set([6003]));
    expect(delivered()).toEqual(idsOf(logged));
  } finally {
    await server.stop();
    collector.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
