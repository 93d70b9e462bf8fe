// One request of the agent and its answer in one piece: undici's real pool, with one connection,
// before a real server.
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Exchange } from '../../../provider/agent/service/service-http.ts';

describe('an exchange', () => {
  /** Requests that the server has received and that a test answers. */
  let asked: ServerResponse[];
  let arrived: () => void;
  let pool: Pool;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    asked = [];
    arrived = () => undefined;
    const server = createServer((_request, response) => {
      asked.push(response);
      arrived();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { connections: 1, pipelining: 1 });
    stop = async () => {
      await pool.destroy();
      server.closeAllConnections();
      server.close();
    };
  });
  afterEach(() => stop());

  const request = { method: 'POST', path: '/', body: 'question' } as const;
  /** The server's end of a request, once it is there. */
  const theirs = async (number: number): Promise<ServerResponse> => {
    while (asked.length < number)
      await new Promise<void>((resolve) => {
        arrived = resolve;
      });
    const response = asked[number - 1];
    if (response === undefined) throw new Error('nothing was asked');
    return response;
  };

  test('returns status, headers and an answer that arrives in pieces', async () => {
    const { answer } = new Exchange(pool, request);
    const response = await theirs(1);
    response.writeHead(409, { 'x-told': 'yes' });
    const pieces = ['a', 'b'.repeat(100_000), 'c'];
    for (const piece of pieces) await new Promise((resolve) => response.write(piece, resolve));
    response.end();
    const { status, headers, body } = await answer;
    expect([status, headers['x-told'], body.toString()]).toEqual([409, 'yes', pieces.join('')]);
  });

  test('is one with what comes before the answer, and may be empty', async () => {
    const { answer } = new Exchange(pool, request);
    const response = await theirs(1);
    response.writeEarlyHints({ link: '</x>; rel=preload' });
    response.writeHead(204, { 'x-told': 'at last' }).end();
    expect(await answer).toMatchObject({ status: 204, headers: { 'x-told': 'at last' }, body: Buffer.alloc(0) });
  });

  test('leaves nothing of the answer in what the pool has read', async () => {
    const read: Buffer[] = [];
    class Watched extends Exchange {
      override onResponseData(...[controller, chunk]: Parameters<Exchange['onResponseData']>): void {
        expect(chunk.some((byte) => byte !== 0)).toBe(true);
        read.push(chunk);
        super.onResponseData(controller, chunk);
      }
    }
    const { answer } = new Watched(pool, request);
    const response = await theirs(1);
    await new Promise((resolve) => response.write('secret', resolve));
    response.end('key');
    const { body } = await answer;
    expect(body.toString()).toBe('secretkey');
    expect(body.buffer.byteLength).toBe(body.length);
    expect(read.length).toBeGreaterThan(0);
    expect(Buffer.concat(read).every((byte) => byte === 0)).toBe(true);
  });

  test('that is cancelled before it has a connection is never sent, and leaves the connection to others', async () => {
    const first = new Exchange(pool, request);
    const response = await theirs(1);
    const waiting = new Exchange(pool, request);
    const reason = new Error('too late');
    waiting.cancel(reason);
    await expect(waiting.answer).rejects.toBe(reason);
    response.end('first');
    expect((await first.answer).body.toString()).toBe('first');
    const next = new Exchange(pool, { ...request, path: '/next' });
    const second = await theirs(2);
    expect(second.req.url).toBe('/next');
    second.end('next');
    const { body } = await next.answer;
    expect(body.toString()).toBe('next');
    expect(body.buffer.byteLength).toBe(body.length);
    expect(asked).toHaveLength(2);
  });

  test('that is cancelled when it is under way ends at once, and its connection with it', async () => {
    const exchange = new Exchange(pool, request);
    const response = await theirs(1);
    const gone = once(response, 'close');
    const reason = new Error('too late');
    exchange.cancel(reason);
    await expect(exchange.answer).rejects.toBe(reason);
    await gone;
    const next = new Exchange(pool, request);
    (await theirs(2)).end('next');
    expect((await next.answer).body.toString()).toBe('next');
  });

  test('that is cancelled when it has ended stays as it is', async () => {
    const exchange = new Exchange(pool, request);
    (await theirs(1)).end('answer');
    const { body } = await exchange.answer;
    exchange.cancel(new Error('too late'));
    expect(body.toString()).toBe('answer');
    const next = new Exchange(pool, request);
    (await theirs(2)).end('next');
    expect((await next.answer).body.toString()).toBe('next');
  });

  test('fails with what ended its connection', async () => {
    const { answer } = new Exchange(pool, request);
    (await theirs(1)).destroy();
    await expect(answer).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
  });
});
