// The service in memory behind the TDE API's HTTPS, as a process of its own: for what a real server does not do on demand,
// such as answering late, answering nonsense, or closing a kept connection. Usage: node memory-server.ts <folder>
// Writes <folder>/ca.pem and prints one line: {"port": n}. Stops when its standard input ends.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { core } from '../../addon/core.ts';
import { type RouteName, ServiceCallError } from '../../provider/client/service.ts';
import { envelopeType, packEnvelope, tdeRoutes, unpackEnvelope } from '../../server/fronts/contract/tde.ts';
import { openMemoryService } from './memory-service.ts';

export const testGuid = '5d3c0a1e-1111-4222-8333-444455556666';

const base = `/tde/v1/${testGuid}/`;
const find = (path: string): { route: RouteName; handle: number | null } | null => {
  for (const [route, row] of Object.entries(tdeRoutes) as [RouteName, { path: string }][]) {
    const match = new RegExp(`^[^/]+${row.path.replace(':handle', '(\\d+)')}$`).exec(path);
    if (match !== null) return { route, handle: match[1] === undefined ? null : Number(match[1]) };
  }
  return null;
};

const serve = (folder: string): void => {
  core.initialize({ allowUnlocked: true });
  const keyPath = join(folder, 'key.pem');
  const cert = core.createSelfSignedCertificate({ keyPath, names: ['127.0.0.1', 'localhost'], days: 2 });
  writeFileSync(join(folder, 'ca.pem'), cert);
  const service = openMemoryService('conformance');
  const server = createServer({ key: readFileSync(keyPath), cert }, async (request, response) => {
    const problem = (status: number, code: string): void => {
      response
        .writeHead(status, { 'content-type': 'application/problem+json' })
        .end(JSON.stringify({ code, title: code }));
    };
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url ?? '';
    const found = path.startsWith(base) ? find(path.slice(base.length)) : null;
    if (request.headers.authorization !== `Bearer ${testGuid}`) return problem(401, 'unauthenticated');
    if (found === null) return problem(404, 'not-found');
    const { head, raw } = unpackEnvelope(Buffer.concat(chunks));
    try {
      const requestId = String(request.headers['x-request-id']);
      const instance = JSON.parse(Buffer.from(String(request.headers['x-dke-instance']), 'base64url').toString());
      const { answer, raw: out } = await service.call(
        { ...found, head: head as never, raw: new Uint8Array(raw) },
        { requestId, instance },
      );
      response.writeHead(200, { 'content-type': envelopeType }).end(packEnvelope(answer, out));
    } catch (error) {
      problem(400, error instanceof ServiceCallError ? error.code : 'internal');
    }
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
  });
  process.stdin.on('end', () => process.exit(0)).resume();
};

if (import.meta.main) serve(process.argv[2] ?? '.');
