// Connections to PostgreSQL with several concurrent queries.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { OrderlyClient } from '../../server/adapters/store/engine/postgres/orderly-client.ts';
import { tlsOf } from '../../server/adapters/store/engine/postgres/postgres-engine.ts';
import { makeAuthority } from '../support/authority.ts';
import { freshDatabase, onPostgresql } from '../support/test-store.ts';

if (!onPostgresql) console.log('left out on SQLite: connections to PostgreSQL');

describe.runIf(onPostgresql)('a connection', () => {
  test('gets one query at a time, in order, and continues after an error; pg prints no warning', async () => {
    const warnings: string[] = [];
    const heed = ({ message }: Error): void => void warnings.push(message);
    process.on('warning', heed);
    const folder = mkdtempSync(join(tmpdir(), 'dke-orderly-'));
    const client = new OrderlyClient({ ...(await freshDatabase(folder)) });
    await client.connect();
    try {
      const ended: number[] = [];
      const ask = async (at: number, text: string): Promise<unknown> => {
        try {
          return (await client.query(text)).rows[0]?.answer;
        } finally {
          ended.push(at);
        }
      };
      const answers = await Promise.allSettled([
        ask(0, 'select 0 as answer, pg_sleep(0.1)'),
        ask(1, 'select 1 as answer'),
        ask(2, 'select nothing'),
        ask(3, 'select 3 as answer'),
        ask(4, 'select 4 as answer'),
      ]);
      expect(ended).toEqual([0, 1, 2, 3, 4]);
      expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.status))).toEqual([
        0,
        1,
        'rejected',
        3,
        4,
      ]);
      // Warnings are emitted one turn later.
      await new Promise((resolve) => setImmediate(resolve));
      expect(warnings).toEqual([]);
    } finally {
      process.off('warning', heed);
      await client.end();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('that is lost in use fails what was asked of it, and ends nothing else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-orderly-'));
    const place = await freshDatabase(folder);
    // The readers of the store are in a pool like this one, which listens to unused connections,
    // but not to one that it has given out.
    const pool = new pg.Pool({ ...place, max: 1, Client: OrderlyClient });
    const other = new OrderlyClient({ ...place });
    try {
      const used = await pool.connect();
      await other.connect();
      const { pid } = (await used.query('select pg_backend_pid() as pid')).rows[0];
      const gone = new Promise((resolve) => used.once('end', resolve));
      const asked = used.query('select pg_sleep(60)').catch((error: { code?: string }) => error.code);
      await other.query('select pg_terminate_backend($1)', [pid]);
      expect(await asked).toBe('57P01');
      await gone;
      used.release();
      expect((await pool.query('select 1 as answer')).rows).toEqual([{ answer: 1 }]);
    } finally {
      await other.end();
      await pool.end();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test('each connection trusts the authorities that the file has then', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-database-ca-'));
  const [first, second] = [makeAuthority(folder, 'first'), makeAuthority(folder, 'second')];
  let serving = first;
  let trusted = first;
  const secured: string[] = [];
  // Answers the request for TLS, makes the handshake, and ends the connection.
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write('S');
      const { certificate, key } = serving.issue({ commonName: 'db', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
      const secure = new TLSSocket(socket, {
        isServer: true,
        cert: readFileSync(certificate),
        key: readFileSync(key),
      });
      secure
        .on('error', () => undefined)
        .once('data', () => {
          secured.push(serving.certificate);
          secure.destroy();
        });
    });
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ssl = tlsOf(() => readFileSync(trusted.certificate, 'utf8'));
  const place = { host: '127.0.0.1', port, user: 'dke', database: 'dke', ssl };
  const refusal = (): Promise<string> => new OrderlyClient(place).open().then(() => '', String);
  try {
    await refusal();
    serving = second;
    expect(await refusal()).toMatch(/certificate|self.signed|unable to verify/i);
    trusted = second;
    await refusal();
    expect(secured).toEqual([first.certificate, second.certificate]);
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
