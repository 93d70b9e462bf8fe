// The self-signed certificate of a service that runs is renewed: a client that trusts exactly this certificate is not cut off.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { until } from '../support/host.ts';
import { builtServer } from '../support/killed-server.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

let folder: string;
let server: ServerProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-certificate-'));
  server = await startServerProcess({ folder, program: [builtServer] });
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const dke = (...args: string[]) =>
  runCommand(['-o', 'json', 'server', 'renew-certificate', ...args, '--config', join(folder, 'dke.toml')]);
/** The fingerprint that a client sees that trusts this file; its error where it does not trust what it sees. */
const seenWith = (ca: string): Promise<string> =>
  new Promise((resolve) => {
    const { hostname: host, port } = new URL(server.url);
    const socket = connect({ host, port: Number(port), ca, servername: '' }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
      socket.destroy();
    });
    socket.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message));
  });

test('the next certificate is made and trusted first, and then served without a restart', async () => {
  const old = readFileSync(server.caFile, 'utf8');
  const before = await seenWith(old);
  const early = await dke('--activate');
  expect([early.code, early.stderr]).toEqual([2, expect.stringContaining('there is no next certificate')]);

  const prepared = await dke();
  expect([prepared.code, prepared.stderr]).toEqual([0, '']);
  const next = JSON.parse(prepared.stdout) as { trust: string; fingerprint: string; state: string };
  expect(next.state).toBe('prepared');
  // Again: the same one, which clients may have by now.
  expect(JSON.parse((await dke()).stdout)).toEqual(next);
  const both = readFileSync(next.trust, 'utf8');
  expect(await seenWith(both)).toBe(before);

  const active = await dke('--activate');
  expect([active.code, active.stderr]).toEqual([0, '']);
  expect(JSON.parse(active.stdout)).toMatchObject({ state: 'active', fingerprint: next.fingerprint });
  server.child.kill('SIGHUP');
  await until('the new certificate', async () => ((await seenWith(both)) === next.fingerprint ? true : undefined));
  expect(await seenWith(readFileSync(server.caFile, 'utf8'))).toBe(next.fingerprint);
  // Who was not told is cut off: the overlap is what keeps them.
  expect(await seenWith(old)).toMatch(/SELF_SIGNED/);
});
