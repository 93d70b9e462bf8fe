// A sealed service: attempts to open it are counted for their address before their body is read,
// and a refusal is reported like every other one.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createLimitRefusals, type LimitReport } from '../../../server/base/limit-refusals.ts';
import { createOriginRates } from '../../../server/base/origin-rates.ts';
import { createSealedApp } from '../../../server/fronts/closed.ts';
import { createDispatch } from '../../../server/fronts/shared/dispatch.ts';

test('a refused passphrase is counted and told with its address, and is not tried', async () => {
  const lines: LimitReport[] = [];
  const { refused, totals } = createLimitRefusals(
    (line) => void lines.push(line),
    () => undefined,
  );
  const tried: (string | null)[] = [];
  const unseal = async (_: Buffer, peer: string | null): Promise<void> => void tried.push(peer);
  const rates = createOriginRates(
    { monotonic: () => 0 },
    { burst: 2, everyMs: 1_000, what: 'attempts', limit: 'sign-ins' },
  );
  const app = createSealedApp({ state: 'sealed', requestId: () => 'id', unseal, refused }, rates);
  const server = createServer(createDispatch(app, [])).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/root/unseal`;
  const answers: [number, string | null][] = [];
  for (let at = 0; at < 4; at += 1) {
    const { status, headers } = await fetch(url, { method: 'POST', body: 'a passphrase' });
    answers.push([status, headers.get('retry-after')]);
  }
  expect(answers).toEqual([
    [204, null],
    [204, null],
    [429, '1'],
    [429, '1'],
  ]);
  expect(tried).toEqual(['127.0.0.1', '127.0.0.1']);
  expect(totals()['sign-ins']).toBe(2);
  expect(lines).toEqual([{ limit: 'sign-ins', refused: 1, from: ['127.0.0.1 (1)'] }]);
  server.closeAllConnections();
  server.close();
});
